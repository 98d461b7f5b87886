// Any descriptor of the system, for libraries that do their own reading and writing, such as libpq, c-ares or libcurl:
// only the task waits until the descriptor is ready.
//
//   weft::wait_readable(PQsocket(connection));
//
// Ready means what it means for poll(2), whoever has read or written in between. A descriptor that poll does not know,
// such as a regular file, is always ready.
#pragma once

#include <chrono>
#include <concepts>
#include <source_location>
#include <system_error>
#include <utility>

#include <weft/detail/fd_handle.hpp>
#include <weft/net/ready_arm.hpp>

namespace weft::inline v1 {

// A descriptor that is waited for more than once. Waiting through it costs less than wait_readable(int), which makes a
// new one each time.
class WEFT_API descriptor final {
 public:
  using source = std::source_location;
  using time_point = std::chrono::steady_clock::time_point;

  descriptor() noexcept = default;  // none: whatever is called on it throws usage_error
  // The descriptor belongs to somebody else, who must not close it while a task waits for it: the kernel does not tell
  // the task then. Between two waits it may be closed, and the number may stand for another open file afterwards, which
  // is then waited for. A wait for a number that stands for nothing is errc::bad_file_descriptor. Throws
  // std::system_error if there is no such descriptor.
  [[nodiscard]] static descriptor borrow(int fd);
  // Takes over the descriptor and closes it at the end.
  [[nodiscard]] static descriptor own(int fd);

  // Wait until it can be read (or has ended) or written. Always cancellation points.
  void wait_readable(source where = source::current()) const { checked_wait(io::side::read, {.where = where}); }
  void wait_writable(source where = source::current()) const { checked_wait(io::side::write, {.where = where}); }
  void wait_readable(std::error_code& why, source where = source::current()) const {
    wait(io::side::read, {.where = where}, why);
  }
  void wait_writable(std::error_code& why, source where = source::current()) const {
    wait(io::side::write, {.where = where}, why);
  }
  // Return false if the time was up first.
  [[nodiscard]] bool wait_readable_until(time_point when, source where = source::current()) const {
    return checked_wait(io::side::read, {when, where});
  }
  [[nodiscard]] bool wait_writable_until(time_point when, source where = source::current()) const {
    return checked_wait(io::side::write, {when, where});
  }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_readable_for(std::chrono::duration<Rep, Period> time,
                                       source where = source::current()) const {
    return wait_readable_until(detail::time_after(time), where);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_writable_for(std::chrono::duration<Rep, Period> time,
                                       source where = source::current()) const {
    return wait_writable_until(detail::time_after(time), where);
  }
  // Arms of a select.
  [[nodiscard]] net::ready_arm readable() const { return {handle_.record(), io::side::read}; }
  [[nodiscard]] net::ready_arm writable() const { return {handle_.record(), io::side::write}; }
  template <std::invocable F>
  [[nodiscard]] auto on_readable(F f) const {
    return detail::handled_arm(readable(), std::move(f));
  }
  template <std::invocable F>
  [[nodiscard]] auto on_writable(F f) const {
    return detail::handled_arm(writable(), std::move(f));
  }

  [[nodiscard]] bool is_open() const noexcept { return handle_.is_open(); }
  // Whoever waits gets errc::operation_canceled. A borrowed descriptor stays open.
  void close() noexcept { handle_.close(); }
  [[nodiscard]] int native_handle() const { return handle_.number(); }
  // Gives up the descriptor without closing it, for somebody else who owns it from now on: tcp_stream::adopt(d.release()).
  // Throws usage_error while another task uses it.
  [[nodiscard]] int release() { return handle_.release(); }

 private:
  explicit descriptor(io::fd_handle h) noexcept : handle_(std::move(h)) {}
  void wait(io::side s, const io::limit& l, std::error_code& why) const;
  bool checked_wait(io::side s, const io::limit& l) const;
  io::fd_handle handle_;
};

// Wait once for a descriptor that belongs to somebody else. Always cancellation points.
inline void wait_readable(int fd, std::source_location where = std::source_location::current()) {
  descriptor::borrow(fd).wait_readable(where);
}
inline void wait_writable(int fd, std::source_location where = std::source_location::current()) {
  descriptor::borrow(fd).wait_writable(where);
}
template <class Rep, class Period>
[[nodiscard]] bool wait_readable_for(std::chrono::duration<Rep, Period> time, int fd,
                                     std::source_location where = std::source_location::current()) {
  return descriptor::borrow(fd).wait_readable_for(time, where);
}
template <class Rep, class Period>
[[nodiscard]] bool wait_writable_for(std::chrono::duration<Rep, Period> time, int fd,
                                     std::source_location where = std::source_location::current()) {
  return descriptor::borrow(fd).wait_writable_for(time, where);
}

}  // namespace weft::inline v1
