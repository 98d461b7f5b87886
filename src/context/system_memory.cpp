#include "context/system_memory.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "base/atomic.hpp"

namespace weft::inline v1::context {
namespace {

// Callers are often in the middle of a user's system call wrapper, so errno stays as it was.
template <class Call>
int errno_of(Call call) noexcept {
  const int before = errno;
  const int result = call() == 0 ? 0 : errno;
  errno = before;
  return result;
}

void* map(std::size_t size) noexcept {
  const int before = errno;
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  errno = before;
  return at == MAP_FAILED ? nullptr : at;
}

int unmap(void* begin, std::size_t size) noexcept {
  return errno_of([=] { return ::munmap(begin, size); });
}

int advise(void* begin, std::size_t size, int advice) noexcept {
  return errno_of([=] { return ::madvise(begin, size, advice); });
}

// Calls process_madvise for this process. The number stands for the calling process and needs no file descriptor.
std::size_t advise_many(const memory_range* ranges, std::size_t count, int advice) noexcept {
  static_assert(sizeof(memory_range) == sizeof(iovec) && offsetof(memory_range, size) == offsetof(iovec, iov_len));
  constexpr int pidfd_self = -10000;
  const int before = errno;
  const long bytes = ::syscall(SYS_process_madvise, pidfd_self, ranges, count, advice, 0);
  errno = before;
  std::size_t done = 0;
  for (long sum = 0; done < count && (sum += static_cast<long>(ranges[done].size)) <= bytes;) ++done;
  return done;
}

int protect(void* begin, std::size_t size, int protection) noexcept {
  return errno_of([=] { return ::mprotect(begin, size, protection); });
}

constexpr system_memory real{map, unmap, advise, advise_many, protect};
constinit base::atomic<const system_memory*> current{&real};

}  // namespace

const system_memory& memory() noexcept { return *current.load(base::acquire); }
const system_memory& real_memory() noexcept { return real; }

replace_system_memory::replace_system_memory(const system_memory& with) noexcept
    : before_(current.exchange(&with, base::acq_rel)) {}
replace_system_memory::~replace_system_memory() { current.store(before_, base::release); }

std::size_t page_size() noexcept {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace weft::inline v1::context
