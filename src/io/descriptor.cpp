#include <weft/descriptor.hpp>

#include <fcntl.h>

#include <string>

#include "io/socket.hpp"
#include "io/watched.hpp"

namespace weft::inline v1 {
namespace {

constexpr waits::wait_kind readable_kind{"readable", waits::kind_number::readable};
constexpr waits::wait_kind writable_kind{"writable", waits::kind_number::writable};

void require_open(int fd) {
  if (::fcntl(fd, F_GETFD) < 0)
    throw std::system_error(errno, std::generic_category(), "wait for descriptor " + std::to_string(fd));
}

}  // namespace

descriptor descriptor::borrow(int fd) {
  require_open(fd);
  return descriptor(io::fd_handle(io::fd_record::take_over(fd, io::kernel_of_caller(), {.borrowed = true})));
}

descriptor descriptor::own(int fd) {
  require_open(fd);
  return descriptor(io::fd_handle(io::fd_record::take_over(fd, io::kernel_of_caller(), {})));
}

// poll(2) is the system call of this operation: it finds nothing, or it does.
void descriptor::wait(io::side s, const io::limit& l, std::error_code& why) const {
  io::fd_record& r = handle_.record();
  const io::terms t(s == io::side::read ? readable_kind : writable_kind, l);
  (void)io::transfer(r, s, 0, t, why, [&](int) noexcept { return io::ask_kernel(r, s); });
  if (why == std::errc::operation_not_permitted) why.clear();  // epoll says so of what is always ready
}

bool descriptor::checked_wait(io::side s, const io::limit& l) const {
  std::error_code why;
  wait(s, l, why);
  if (why == std::errc::timed_out) return false;
  io::throw_if(why, "wait for", handle_.record());
  return true;
}

}  // namespace weft::inline v1
