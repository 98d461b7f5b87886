// weft::fs::file. Each operation is a cancellation point, then holds the descriptor while it makes its kernel calls, and
// tells the caller how they ended.
#include <weft/fs/file.hpp>

#include <fcntl.h>

#include <cstdint>
#include <string>

#include "io/file_calls.hpp"
#include <weft/errors.hpp>

namespace weft::inline v1 {
namespace io {

void file_closer::operator()(open_file* f) const noexcept { delete f; }

namespace {

std::error_code invalid_argument() noexcept { return std::make_error_code(std::errc::invalid_argument); }

// Offsets are signed for the kernel, and -1 has a meaning of its own in reads and writes.
bool fits_offset(std::uint64_t n) noexcept { return n <= INT64_MAX; }

// The flags of open(2); -1 if the options contradict each other.
int flags_of(const fs::open_options& how) noexcept {
  const bool writes = how.write || how.append;
  if ((!how.read && !writes) || (how.truncate && !writes) || (how.exclusive && !how.create) || how.permissions > 07777)
    return -1;
  int flags = how.further_flags | (how.read && writes ? O_RDWR : writes ? O_WRONLY : O_RDONLY);
  if (how.append) flags |= O_APPEND;
  if (how.create) flags |= O_CREAT;
  if (how.exclusive) flags |= O_EXCL;
  if (how.truncate) flags |= O_TRUNC;
  if (how.direct) flags |= O_DIRECT;
  return flags;
}

// Calls call(file), which returns an error, while it holds the descriptor.
template <class Call>
void operate(open_file* f, const char* operation, std::error_code* caller, std::source_location where, Call call) {
  if (f == nullptr) detail::throw_usage("a fs::file is used that is empty: it was never opened, or moved from", where);
  begin_operation(where);
  std::error_code why = std::make_error_code(std::errc::bad_file_descriptor);
  if (const file_use held(f); held) why = call(*f);
  tell({why, operation}, f->name(), caller);
}

// The same for one kernel call, which is made off the worker.
template <class Call>
void operate_blocking(open_file* f, const char* operation, std::error_code* caller, std::source_location where,
                      Call call) {
  operate(f, operation, caller, where, [&](open_file& held) {
    return blocking([&] { return uninterrupted([&] { return call(held.calls(), held.fd()); }); }, where);
  });
}

fs::file_time time_of(const timespec& t) noexcept {
  return fs::file_time(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

std::filesystem::file_type type_of(mode_t mode) noexcept {
  using enum std::filesystem::file_type;
  switch (mode & S_IFMT) {
    case S_IFREG: return regular;
    case S_IFDIR: return directory;
    case S_IFLNK: return symlink;
    case S_IFBLK: return block;
    case S_IFCHR: return character;
    case S_IFIFO: return fifo;
    case S_IFSOCK: return socket;
    default: return unknown;
  }
}

}  // namespace

fs::file file_access::open(const kernel_calls& calls, const std::filesystem::path& path, const fs::open_options& how,
                           std::error_code* why, std::source_location where) {
  begin_operation(where);
  // Everything that may throw comes before the descriptor, and its owner waits for it.
  fs::file made;
  made.core_.reset(new open_file(calls, path.native()));
  const int flags = flags_of(how);
  const std::error_code error =
      flags < 0 ? invalid_argument() : io::open(*made.core_, path.native(), flags, how.permissions, where);
  if (error) made.core_.reset();
  tell({error, "open"}, path.native(), why);
  return made;
}

}  // namespace io

namespace fs {

file file::opened(const std::filesystem::path& path, const open_options& how, std::error_code* why, place where) {
  return io::file_access::open(io::kernel_of_caller(), path, how, why, where);
}

file file::adopt(int fd, std::string_view name) {
  if (fd < 0) detail::throw_usage("fs::file::adopt was given a negative number instead of a descriptor");
  file made;
  made.core_.reset(
      new io::open_file(io::kernel_of_caller(), name.empty() ? "descriptor " + std::to_string(fd) : std::string(name)));
  made.core_->adopt(fd);
  return made;
}

std::size_t file::read(std::span<const mutable_buffer> to, std::uint64_t offset, amount much, std::error_code* why,
                       place where) const {
  std::size_t count = 0;
  io::operate(core_.get(), "read", why, where, [&](io::open_file& f) {
    if (!io::fits_offset(offset)) return io::invalid_argument();
    const io::transferred done = io::read(f, to, static_cast<off_t>(offset), io::amount(much), where);
    count = done.count;
    return done.why;
  });
  return count;
}

std::size_t file::write(std::span<const const_buffer> from, std::uint64_t offset, amount much, std::error_code* why,
                        place where) {
  std::size_t count = 0;
  io::operate(core_.get(), "write", why, where, [&](io::open_file& f) {
    if (!io::fits_offset(offset)) return io::invalid_argument();
    const io::transferred done = io::write(f, from, static_cast<off_t>(offset), io::amount(much), where);
    count = done.count;
    return done.why;
  });
  return count;
}

void file::flush(bool everything, std::error_code* why, place where) {
  io::operate_blocking(core_.get(), "sync", why, where, [&](const io::kernel_calls& calls, int fd) {
    return everything ? calls.fsync(fd) : calls.fdatasync(fd);
  });
}

file_info file::look(std::error_code* why, place where) const {
  struct stat about{};
  io::operate_blocking(core_.get(), "stat", why, where,
                       [&](const io::kernel_calls& calls, int fd) { return calls.fstat(fd, &about); });
  constexpr std::uint64_t block = 512;  // the unit of st_blocks, whatever st_blksize says
  return {.size = static_cast<std::uint64_t>(about.st_size),
          .allocated = static_cast<std::uint64_t>(about.st_blocks) * block,
          .type = about.st_mode == 0 ? std::filesystem::file_type::none : io::type_of(about.st_mode),
          .permissions = static_cast<std::filesystem::perms>(about.st_mode & 07777),
          .device = about.st_dev,
          .inode = about.st_ino,
          .links = about.st_nlink,
          .modified = io::time_of(about.st_mtim),
          .changed = io::time_of(about.st_ctim),
          .accessed = io::time_of(about.st_atim)};
}

// A size beyond the kernel's becomes a negative one, which the kernel refuses.
void file::resize(std::uint64_t size, std::error_code* why, place where) {
  io::operate_blocking(core_.get(), "truncate", why, where, [&](const io::kernel_calls& calls, int fd) {
    return calls.ftruncate(fd, static_cast<off_t>(size));
  });
}

void file::reserve(std::uint64_t offset, std::uint64_t length, std::error_code* why, place where) {
  io::operate_blocking(core_.get(), "allocate", why, where, [&](const io::kernel_calls& calls, int fd) {
    return calls.fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(length));
  });
}

void file::shut(std::error_code* why, place where) {
  if (why != nullptr) why->clear();
  if (core_ == nullptr) return;
  std::error_code error;
  io::blocking_to_the_end([&] { error = core_->close(); }, where);
  io::tell({error, "close"}, core_->name(), why);
}

std::string_view file::name() const noexcept { return core_ == nullptr ? std::string_view() : core_->name(); }
int file::native_handle() const noexcept { return core_ == nullptr || core_->is_closed() ? -1 : core_->fd(); }

int file::release() {
  if (core_ == nullptr) return -1;
  if (core_->release()) return core_->fd();
  if (!core_->is_closed()) detail::throw_usage("fs::file::release is called while another task uses the file");
  return -1;
}

}  // namespace fs
}  // namespace weft::inline v1
