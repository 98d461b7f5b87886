#include "io/replace_file.hpp"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/atomic.hpp"
#include "io/file_calls.hpp"

namespace weft::inline v1::io {
namespace {

// A file with a name of its own, which goes with this object unless rename_to() has succeeded.
class temporary_file {
 public:
  temporary_file(const kernel_calls& calls, const std::filesystem::path& directory, std::source_location where)
      : directory_(directory),
        file_(calls, directory.native()),
        where_(where) {}
  ~temporary_file() {
    if (name_.empty()) return;
    blocking_to_the_end(
        [&] {
          (void)file_.calls().unlink(name_.c_str());
          (void)file_.close();
        },
        where_);
  }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;

  [[nodiscard]] std::error_code create(mode_t permissions);
  [[nodiscard]] std::error_code rename_to(const std::filesystem::path& path) noexcept {
    const std::error_code why = uninterrupted([&] { return file_.calls().rename(name_.c_str(), path.c_str()); });
    if (!why) name_.clear();
    return why;
  }
  [[nodiscard]] open_file& file() noexcept { return file_; }

 private:
  const std::filesystem::path directory_;
  open_file file_;
  std::string name_;  // empty while there is no such file
  const std::source_location where_;
};

// Processes and runtimes may use the same directory. A name that is taken is passed over.
base::atomic<std::uint64_t> temporary_files{0};

std::error_code temporary_file::create(mode_t permissions) {
  constexpr int most_attempts = 1000;
  std::error_code why;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    const std::uint64_t number = temporary_files.fetch_add(1, base::relaxed);
    std::string name = directory_ / (".weft-" + std::to_string(::getpid()) + '-' + std::to_string(number));
    why = open_here(file_, name, O_WRONLY | O_CREAT | O_EXCL, permissions);
    if (!why) name_ = std::move(name);
    if (why != std::errc::file_exists) break;
  }
  return why;
}

// Makes the path lead to the file itself and not to a symbolic link, so that the link is not replaced.
std::error_code follow_links(const kernel_calls& calls, std::filesystem::path& path) {
  constexpr int most_links = 40;  // as many as the kernel follows
  for (int links = 0; links < most_links; ++links) {
    char target[PATH_MAX];
    const ssize_t size = calls.readlink(path.c_str(), target, sizeof target);
    if (size < 0) return {};  // no link; if there is no such path either, others will find out
    path = path.parent_path() / std::string_view(target, static_cast<std::size_t>(size));
  }
  return std::make_error_code(std::errc::too_many_symbolic_link_levels);
}

// What the path leads to now.
struct old_file {
  std::optional<mode_t> mode;  // nothing, if there is none
  [[nodiscard]] bool is_special() const noexcept { return mode && !S_ISREG(*mode); }
  [[nodiscard]] std::error_code look(const kernel_calls& calls, const std::filesystem::path& path) noexcept {
    struct stat about{};
    const std::error_code why = uninterrupted([&] { return calls.stat(path.c_str(), &about); });
    if (why == std::errc::no_such_file_or_directory) return {};
    if (why) return why;
    mode = about.st_mode;
    return S_ISDIR(about.st_mode) ? std::make_error_code(std::errc::is_a_directory) : std::error_code();
  }
};

std::error_code write_in_turns(open_file& to, const_buffer contents, std::source_location where) {
  while (contents.size() > 0) {
    const const_buffer next(contents.data(), std::min(contents.size(), bytes_per_turn));
    if (const transferred done = write(to, {&next, 1}, current_position, amount::all, where); done.why) return done.why;
    contents = contents.after(next.size());
  }
  return {};
}

// A device or a pipe: it is not replaced.
file_failure write_special(const kernel_calls& calls, const std::filesystem::path& path, const_buffer contents,
                           std::source_location where) {
  open_file f(calls, path.native());
  if (const std::error_code why = open(f, path.native(), O_WRONLY, 0, where)) return {why, "open"};
  return {write_in_turns(f, contents, where), "write"};
}

// Some file systems cannot sync a directory and say so by EINVAL. There is nothing more to be done on them.
std::error_code sync_directory(open_file& directory) noexcept {
  const std::error_code why = uninterrupted([&] { return directory.calls().fsync(directory.fd()); });
  return why == std::errc::invalid_argument ? std::error_code() : why;
}

}  // namespace

file_failure replace_file(const kernel_calls& calls, std::filesystem::path path, const_buffer contents,
                          const fs::write_options& how, std::source_location where) {
  if (how.permissions > 07777 || path.native().find('\0') != std::string::npos)
    return {std::make_error_code(std::errc::invalid_argument), "open"};

  old_file old;
  std::error_code why = blocking([&] { return old.look(calls, path); }, where);
  if (why) return {why, "open"};
  // The links of /proc/self/fd lead to pipes and sockets that have no path, so a special file keeps the one it has.
  if (old.is_special()) return write_special(calls, path, contents, where);
  if ((why = blocking([&] { return follow_links(calls, path); }, where))) return {why, "open"};

  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  open_file directory(calls, parent.native());
  temporary_file temporary(calls, parent, where);
  open_file& f = temporary.file();
  // The directory is opened first: if that cannot be done, nothing has changed yet.
  why = blocking(
      [&] {
        std::error_code failed;
        if (how.sync) failed = open_here(directory, parent.native(), O_RDONLY | O_DIRECTORY, 0);
        return failed ? failed : temporary.create(old.mode.value_or(how.permissions) & 07777);
      },
      where);
  if (why) return {why, "make a temporary file for"};

  if ((why = write_in_turns(f, contents, where))) return {why, "write"};

  // The umask may have taken permissions that the old file has.
  if (old.mode)
    why = blocking([&] { return uninterrupted([&] { return calls.fchmod(f.fd(), *old.mode & 07777); }); }, where);
  if (why) return {why, "set the permissions of"};

  if (how.sync) why = blocking([&] { return uninterrupted([&] { return calls.fsync(f.fd()); }); }, where);
  if (why) return {why, "sync"};

  return blocking(
      [&]() -> file_failure {
        if (const std::error_code failed = temporary.rename_to(path)) return {failed, "replace"};
        return {how.sync ? sync_directory(directory) : std::error_code(), "sync the directory of"};
      },
      where);
}

}  // namespace weft::inline v1::io
