#include "observe/memory.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace weft::inline v1::observe {
namespace {

// Some sandboxes refuse process_vm_readv, even for the process itself.
bool copy_by_file(void* to, const void* from, std::size_t n) noexcept {
  const int file = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t got = ::pread(file, to, n, static_cast<off_t>(reinterpret_cast<std::uintptr_t>(from)));
  ::close(file);
  return got == static_cast<ssize_t>(n);
}

}  // namespace

bool try_copy(void* to, const void* from, std::size_t n) noexcept {
  const iovec local{to, n};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): the system's type has no const; nothing is written there
  const iovec remote{const_cast<void*>(from), n};
  const long got = ::syscall(SYS_process_vm_readv, ::getpid(), &local, 1UL, &remote, 1UL, 0UL);
  if (got == static_cast<long>(n)) return true;
  return got < 0 && (errno == ENOSYS || errno == EPERM) && copy_by_file(to, from, n);
}

}  // namespace weft::inline v1::observe
