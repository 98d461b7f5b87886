#include <weftgz/target.hpp>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include <weft/dispatcher.hpp>

#include <weftgz/failure.hpp>
#include <weftgz/names.hpp>

namespace weftgz {
namespace {

constexpr std::string_view prefix = ".weftgz-";

// Not derived from the final name, which may be as long as a name can be.
std::string unfinished_name(const std::string& path) {
  static std::atomic<unsigned> number{0};
  return *beside(path, std::string(prefix) + std::to_string(getpid()) + "-" + std::to_string(++number));
}

[[noreturn]] void fail(const std::string& name) { throw io_failure(name, {errno, std::generic_category()}); }

// False if there is a file `to`.
bool rename_to_new(const char* from, const char* to) {
  if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST) return false;
  if (errno != EINVAL && errno != ENOSYS) fail(to);
  // A file system that cannot do both in one step. The gap is the one that gzip has, too.
  struct stat s;
  if (lstat(to, &s) == 0) return false;
  if (std::rename(from, to) != 0) fail(to);
  return true;
}

}  // namespace

bool is_name_of_unfinished(std::string_view name) noexcept { return last_part(name).starts_with(prefix); }

target::target(std::string path) : path_(std::move(path)), unfinished_(unfinished_name(path_)) {
  std::error_code why;
  file_ =
      weft::fs::file::open(unfinished_, {.write = true, .create = true, .exclusive = true, .permissions = 0600}, why);
  if (why) {
    unfinished_.clear();
    throw io_failure(path_, why);
  }
}

target::~target() {
  if (!unfinished_.empty()) unlink(unfinished_.c_str());
}

bool target::commit(const struct stat& original, std::uint32_t modified, bool force) {
  return weft::blocking([&] {
    const int fd = file_.native_handle();
    // Only root may give files away, so a failure is none of ours. The owner comes first: changing it clears bits of the
    // mode. Without the owner the set-user-id bits would be somebody else's.
    const bool same_owner = fchown(fd, original.st_uid, original.st_gid) == 0;
    (void)fchmod(fd, original.st_mode & (same_owner ? 07777U : 0777U));
    timespec times[2] = {original.st_atim, original.st_mtim};
    if (modified != 0) times[1] = {static_cast<time_t>(modified), 0};
    (void)futimens(fd, times);
    std::error_code why;
    file_.close(why);
    if (why) throw io_failure(path_, why);
    if (!force) {
      if (!rename_to_new(unfinished_.c_str(), path_.c_str())) return false;
    } else if (std::rename(unfinished_.c_str(), path_.c_str()) != 0) {
      fail(path_);
    }
    unfinished_.clear();
    return true;
  });
}

}  // namespace weftgz
