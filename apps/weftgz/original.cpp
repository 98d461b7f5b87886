#include <weftgz/original.hpp>

#include <cerrno>
#include <system_error>

#include <fcntl.h>

#include <weftgz/names.hpp>
#include <weftgz/target.hpp>

namespace weftgz {
namespace {

std::string reason(int error) { return std::error_code(error, std::generic_category()).message(); }

void find_in(const std::string& directory, run_state& run, std::vector<item>& to) {
  std::error_code why;
  weft::fs::walker w = weft::fs::walk(directory, why);
  if (why) return run.report.error(directory, why.message());
  for (;;) {
    const std::optional<weft::fs::entry> e = w.next(why);
    if (why) {
      run.report.error(directory, why.message());
      why.clear();
      continue;
    }
    if (!e) return;
    if (e->type == std::filesystem::file_type::regular && !is_name_of_unfinished(e->path.native()))
      to.push_back({e->path.native(), true});
  }
}

// What speaks against taking this file as it is. Empty: nothing.
std::string objection(const struct stat& s, const options& how) {
  if (S_ISDIR(s.st_mode)) return " is a directory -- ignored";
  if (!how.writes_files()) return {};
  if (!S_ISREG(s.st_mode)) return " is not a directory or a regular file -- ignored";
  if (!how.keep && !how.force && s.st_nlink > 1)
    return " has " + std::to_string(s.st_nlink - 1) + " other link" + (s.st_nlink > 2 ? "s" : "") + " -- file ignored";
  return {};
}

}  // namespace

std::vector<item> items_of(run_state& run) {
  std::vector<item> all;
  for (const std::string& path : run.how.files) {
    struct stat s;
    if (run.how.recursive && path != "-" && stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode))
      find_in(path, run, all);
    else
      all.push_back({path, false});
  }
  return all;
}

std::optional<original> open_original(const item& i, run_state& run) {
  const options& how = run.how;
  original o;
  o.path = i.path;
  int status = lstat(o.path.c_str(), &o.info);
  if (status != 0 && errno == ENOENT && how.mode != mode::compress && suffix_of(i.path, how.suffix).empty()) {
    o.path += how.suffix;
    status = lstat(o.path.c_str(), &o.info);
  }
  if (status != 0) {
    run.report.error(o.path, reason(errno));
    return std::nullopt;
  }
  if (S_ISLNK(o.info.st_mode)) {
    if (how.writes_files() && !how.force) {
      run.report.error(o.path, "is a symbolic link -- use -f to follow it");
      return std::nullopt;
    }
    if (stat(o.path.c_str(), &o.info) != 0) {
      run.report.error(o.path, reason(errno));
      return std::nullopt;
    }
  }
  if (const std::string what = objection(o.info, how); !what.empty()) {
    run.report.warning(o.path, what);
    return std::nullopt;
  }
  std::error_code why;
  o.file = weft::fs::file::open(o.path, {}, why);
  if (why) {
    run.report.error(o.path, why.message());
    return std::nullopt;
  }
  (void)fstat(o.file.native_handle(),
              &o.info);  // of what was opened, should the name stand for something else meanwhile
  return o;
}

}  // namespace weftgz
