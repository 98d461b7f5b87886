// The kernel calls of this layer, as a table. Each runtime has one; a descriptor keeps the table of the runtime in which
// it was opened. A test puts in a call that fails, and a simulated network can take the place of the kernel.
//
// Each entry behaves as the function of libc with the same name: it returns -1 and sets errno if it fails. Those of names
// have their own ways to fail, which are those of libc, too.
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <system_error>

struct addrinfo;
struct io_uring_params;
struct pollfd;

namespace weft::inline v1::io {

struct kernel_calls {
  // --- sockets ------------------------------------------------------------------------------------------------------
  int (*socket)(int domain, int type, int protocol) noexcept;
  int (*socketpair)(int domain, int type, int protocol, int both[2]) noexcept;
  int (*bind)(int fd, const sockaddr* address, socklen_t size) noexcept;
  int (*listen)(int fd, int backlog) noexcept;
  int (*accept4)(int fd, sockaddr* from, socklen_t* size, int flags) noexcept;
  int (*connect)(int fd, const sockaddr* address, socklen_t size) noexcept;
  ssize_t (*recv)(int fd, void* to, std::size_t size, int flags) noexcept;
  ssize_t (*send)(int fd, const void* from, std::size_t size, int flags) noexcept;
  ssize_t (*recvmsg)(int fd, msghdr* message, int flags) noexcept;
  ssize_t (*sendmsg)(int fd, const msghdr* message, int flags) noexcept;
  ssize_t (*sendfile)(int to, int from, off_t* offset, std::size_t size) noexcept;
  int (*recvmmsg)(int fd, mmsghdr* messages, unsigned count, int flags) noexcept;  // without a time limit
  int (*sendmmsg)(int fd, mmsghdr* messages, unsigned count, int flags) noexcept;
  int (*shutdown)(int fd, int how) noexcept;
  int (*getsockname)(int fd, sockaddr* address, socklen_t* size) noexcept;
  int (*getpeername)(int fd, sockaddr* address, socklen_t* size) noexcept;
  int (*getsockopt)(int fd, int level, int name, void* value, socklen_t* size) noexcept;
  int (*setsockopt)(int fd, int level, int name, const void* value, socklen_t size) noexcept;
  // --- any descriptor -----------------------------------------------------------------------------------------------
  ssize_t (*read)(int fd, void* to, std::size_t size) noexcept;
  ssize_t (*write)(int fd, const void* from, std::size_t size) noexcept;
  int (*close)(int fd) noexcept;
  int (*duplicate)(int fd) noexcept;  // fcntl F_DUPFD_CLOEXEC
  int (*duplicate_above)(int fd, int lowest) noexcept;  // the same, with a number of at least `lowest`
  int (*set_nonblocking)(int fd) noexcept;
  int (*pipe2)(int both[2], int flags) noexcept;
  // --- readiness ----------------------------------------------------------------------------------------------------
  int (*epoll_create1)(int flags) noexcept;
  int (*epoll_ctl)(int epoll, int operation, int fd, epoll_event* event) noexcept;
  // As epoll_pwait2: `timeout` is relative, nullptr means for ever.
  int (*epoll_wait)(int epoll, epoll_event* events, int most, const timespec* timeout) noexcept;
  int (*eventfd)(unsigned count, int flags) noexcept;
  int (*ppoll)(pollfd* fds, std::size_t count, const timespec* timeout) noexcept;
  // --- io_uring (ring.hpp) ------------------------------------------------------------------------------------------
  int (*ring_setup)(unsigned entries, io_uring_params* about) noexcept;
  int (*ring_enter)(int ring, unsigned submit, unsigned least, unsigned flags) noexcept;
  void* (*ring_map)(std::size_t size, int ring, std::uint64_t part) noexcept;  // nullptr if it fails
  // --- files --------------------------------------------------------------------------------------------------------
  int (*open)(const char* path, int flags, mode_t permissions) noexcept;
  // An offset of -1 means the position of the descriptor, which then moves on.
  ssize_t (*preadv2)(int fd, const iovec* to, int count, off_t offset, int flags) noexcept;
  ssize_t (*pwritev2)(int fd, const iovec* from, int count, off_t offset, int flags) noexcept;
  int (*fsync)(int fd) noexcept;
  int (*fdatasync)(int fd) noexcept;
  int (*fstat)(int fd, struct stat* about) noexcept;
  int (*ftruncate)(int fd, off_t size) noexcept;
  int (*fallocate)(int fd, int mode, off_t offset, off_t size) noexcept;
  int (*fchmod)(int fd, mode_t permissions) noexcept;
  int (*stat)(const char* path, struct stat* about) noexcept;
  ssize_t (*readlink)(const char* path, char* to, std::size_t size) noexcept;
  int (*rename)(const char* from, const char* to) noexcept;
  int (*unlink)(const char* path) noexcept;
  // --- processes ----------------------------------------------------------------------------------------------------
  // As posix_spawnp: returns the number of the error itself, or 0.
  int (*spawn)(pid_t* child, const char* program, const posix_spawn_file_actions_t* actions,
               const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) noexcept;
  int (*pidfd_open)(pid_t child) noexcept;
  int (*pidfd_send_signal)(int pidfd, int number) noexcept;
  int (*wait_pidfd)(int pidfd, siginfo_t* about, int options) noexcept;  // waitid P_PIDFD
  int (*kill)(pid_t child, int number) noexcept;
  pid_t (*waitpid)(pid_t child, int* status, int options) noexcept;
  // --- names --------------------------------------------------------------------------------------------------------
  int (*getaddrinfo)(const char* host, const char* service, const addrinfo* hints, addrinfo** found) noexcept;
  void (*freeaddrinfo)(addrinfo* found) noexcept;
  unsigned (*if_nametoindex)(const char* interface) noexcept;
};

// errno, read anew. A task that was moved to another thread in between must not use the address that it had before, and
// the compiler may keep it, so this is not inlined.
[[nodiscard, gnu::noinline]] int last_error_number() noexcept;
[[nodiscard]] inline std::error_code last_error() noexcept { return {last_error_number(), std::generic_category()}; }
// The result of a call, or its error as a number below zero.
[[nodiscard]] inline std::ptrdiff_t outcome_of(std::ptrdiff_t result) noexcept {
  return result >= 0 ? result : -std::ptrdiff_t{last_error_number()};
}

// The kernel itself.
[[nodiscard]] const kernel_calls& real_kernel() noexcept;
// The table of the runtime of the calling task; the kernel itself for an outside thread.
[[nodiscard]] const kernel_calls& kernel_of_caller() noexcept;

}  // namespace weft::inline v1::io
