#include "io/kernel.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/atomic.hpp"

namespace weft::inline v1::io {
namespace {

// epoll_pwait2 waits with the resolution of the clock, and came with Linux 5.11. Where it is missing, or a container
// denies it, a wait ends up to 1 ms late.
int wait_for_events(int epoll, epoll_event* events, int most, const timespec* timeout) noexcept {
  static constinit base::atomic<bool> is_missing{false};
  if (!is_missing.load(base::relaxed)) {
    const int found = ::epoll_pwait2(epoll, events, most, timeout, nullptr);
    if (found >= 0 || (errno != ENOSYS && errno != EPERM)) return found;
    is_missing.store(true, base::relaxed);
  }
  if (timeout == nullptr) return ::epoll_wait(epoll, events, most, -1);
  const long seconds = std::min<long>(timeout->tv_sec, 1'000'000);  // a wait may end early
  return ::epoll_wait(epoll, events, most, static_cast<int>(seconds * 1000 + (timeout->tv_nsec + 999'999) / 1'000'000));
}

// libc's functions are points at which a thread can be cancelled, which costs two locked instructions a call. Nobody
// cancels threads here, so the two calls that every request makes go to the kernel directly. Sanitizers have to see them.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define WEFT_DIRECT_CALLS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define WEFT_DIRECT_CALLS 0
#endif
#endif
#ifndef WEFT_DIRECT_CALLS
#define WEFT_DIRECT_CALLS 1
#endif

ssize_t receive(int fd, void* to, std::size_t size, int flags) noexcept {
#if WEFT_DIRECT_CALLS
  return ::syscall(SYS_recvfrom, fd, to, size, flags, nullptr, nullptr);
#else
  return ::recv(fd, to, size, flags);
#endif
}

ssize_t transmit(int fd, const void* from, std::size_t size, int flags) noexcept {
#if WEFT_DIRECT_CALLS
  return ::syscall(SYS_sendto, fd, from, size, flags, nullptr, 0);
#else
  return ::send(fd, from, size, flags);
#endif
}

// Non-blocking is a property of what the descriptor refers to, which others may share. So this is only for what was
// made here, or was given away to us.
int make_nonblocking(int fd) noexcept {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags < 0 ? -1 : ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

}  // namespace

int last_error_number() noexcept {
  asm volatile("" ::: "memory");
  return errno;
}

const kernel_calls& real_kernel() noexcept {
  static constexpr kernel_calls table{
      .socket = ::socket,
      .socketpair = ::socketpair,
      .bind = ::bind,
      .listen = ::listen,
      .accept4 = [](int fd, sockaddr* from, socklen_t* size,
                    int flags) noexcept { return ::accept4(fd, from, size, flags); },
      .connect = [](int fd, const sockaddr* to, socklen_t size) noexcept { return ::connect(fd, to, size); },
      .recv = receive,
      .send = transmit,
      .recvmsg = [](int fd, msghdr* m, int flags) noexcept { return ::recvmsg(fd, m, flags); },
      .sendmsg = [](int fd, const msghdr* m, int flags) noexcept { return ::sendmsg(fd, m, flags); },
      .sendfile = ::sendfile,
      .recvmmsg = [](int fd, mmsghdr* m, unsigned count,
                     int flags) noexcept { return ::recvmmsg(fd, m, count, flags, nullptr); },
      .sendmmsg = [](int fd, mmsghdr* m, unsigned count,
                     int flags) noexcept { return ::sendmmsg(fd, m, count, flags); },
      .shutdown = ::shutdown,
      .getsockname = [](int fd, sockaddr* a, socklen_t* size) noexcept { return ::getsockname(fd, a, size); },
      .getpeername = [](int fd, sockaddr* a, socklen_t* size) noexcept { return ::getpeername(fd, a, size); },
      .getsockopt = ::getsockopt,
      .setsockopt = ::setsockopt,
      .read = [](int fd, void* to, std::size_t size) noexcept { return ::read(fd, to, size); },
      .write = [](int fd, const void* from, std::size_t size) noexcept { return ::write(fd, from, size); },
      .close = [](int fd) noexcept { return ::close(fd); },
      .duplicate = [](int fd) noexcept { return ::fcntl(fd, F_DUPFD_CLOEXEC, 0); },
      .duplicate_above = [](int fd, int lowest) noexcept { return ::fcntl(fd, F_DUPFD_CLOEXEC, lowest); },
      .set_nonblocking = make_nonblocking,
      .pipe2 = ::pipe2,
      .epoll_create1 = ::epoll_create1,
      .epoll_ctl = ::epoll_ctl,
      .epoll_wait = wait_for_events,
      .eventfd = ::eventfd,
      .ppoll = [](pollfd* fds, std::size_t count,
                  const timespec* timeout) noexcept { return ::ppoll(fds, count, timeout, nullptr); },
      // By number, because libc has no functions for these.
      .ring_setup =
          [](unsigned entries, io_uring_params* about) noexcept {
            return static_cast<int>(::syscall(SYS_io_uring_setup, entries, about));
          },
      .ring_enter =
          [](int ring, unsigned submit, unsigned least, unsigned flags) noexcept {
            return static_cast<int>(::syscall(SYS_io_uring_enter, ring, submit, least, flags, nullptr, 0));
          },
      .ring_map = [](std::size_t size, int ring, std::uint64_t part) noexcept -> void* {
        void* at =
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, static_cast<off_t>(part));
        return at == MAP_FAILED ? nullptr : at;
      },
      .open = [](const char* path, int flags, mode_t permissions) noexcept { return ::open(path, flags, permissions); },
      .preadv2 = [](int fd, const iovec* to, int count, off_t offset,
                    int flags) noexcept { return ::preadv2(fd, to, count, offset, flags); },
      .pwritev2 = [](int fd, const iovec* from, int count, off_t offset,
                     int flags) noexcept { return ::pwritev2(fd, from, count, offset, flags); },
      .fsync = [](int fd) noexcept { return ::fsync(fd); },
      .fdatasync = [](int fd) noexcept { return ::fdatasync(fd); },
      .fstat = ::fstat,
      .ftruncate = ::ftruncate,
      .fallocate = [](int fd, int mode, off_t offset,
                      off_t size) noexcept { return ::fallocate(fd, mode, offset, size); },
      .fchmod = ::fchmod,
      .stat = ::stat,
      .readlink = ::readlink,
      .rename = ::rename,
      .unlink = ::unlink,
      .spawn =
          [](pid_t* child, const char* program, const posix_spawn_file_actions_t* actions,
             const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) noexcept {
            return ::posix_spawnp(child, program, actions, attributes, arguments, environment);
          },
      // By number, because glibc has no functions for these before 2.36, and declares them in a header of its own.
      .pidfd_open = [](pid_t child) noexcept { return static_cast<int>(::syscall(SYS_pidfd_open, child, 0)); },
      .pidfd_send_signal =
          [](int pidfd, int number) noexcept {
            return static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, 0));
          },
      .wait_pidfd =
          [](int pidfd, siginfo_t* about, int options) noexcept {
            constexpr auto by_pidfd = static_cast<idtype_t>(3);  // P_PIDFD
            return ::waitid(by_pidfd, static_cast<id_t>(pidfd), about, options);
          },
      .kill = ::kill,
      .waitpid = [](pid_t child, int* status, int options) noexcept { return ::waitpid(child, status, options); },
      .getaddrinfo = [](const char* host, const char* service, const addrinfo* hints,
                        addrinfo** found) noexcept { return ::getaddrinfo(host, service, hints, found); },
      .freeaddrinfo = ::freeaddrinfo,
      .if_nametoindex = ::if_nametoindex,
  };
  return table;
}

}  // namespace weft::inline v1::io
