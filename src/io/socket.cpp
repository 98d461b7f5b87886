#include "io/socket.hpp"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <string>

#include <weft/detail/clock.hpp>
#include <weft/errors.hpp>
#include <weft/this_task.hpp>

namespace weft::inline v1::io {
namespace {

constexpr waits::wait_kind accept_kind{"accept", waits::kind_number::accept};
constexpr waits::wait_kind connect_kind{"connect", waits::kind_number::connect};

void set(std::error_code& why, int result) noexcept {
  if (result < 0)
    why = last_error();
  else
    why.clear();
}

// A connection that has failed before it was accepted. accept(2) says that these are to be treated as EAGAIN.
bool concerns_one_connection(int error) noexcept {
  switch (error) {
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH: return true;
    default: return false;
  }
}

template <class Ask>
net::endpoint ask_for_endpoint(fd_record& r, Ask ask, const char* operation) {
  std::error_code why = closed_by_another();
  sockaddr_storage room{};
  socklen_t size = sizeof room;
  if (const use in_use(r); in_use) set(why, ask(r.fd(), reinterpret_cast<sockaddr*>(&room), &size));
  throw_if(why, operation, r);
  return {reinterpret_cast<sockaddr*>(&room), size};
}

}  // namespace

fd_handle open_socket(const kernel_calls& calls, int family, int type, fd_traits traits, std::error_code& why) {
  const int fd = calls.socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  set(why, fd);
  if (why) return {};
  return fd_handle(fd_record::take_over(fd, calls, traits));
}

fd_handle open_socket(int family, int type, fd_traits traits, std::error_code& why) {
  return open_socket(kernel_of_caller(), family, type, traits, why);
}

std::pair<fd_handle, fd_handle> open_pair(int family, int type, fd_traits traits, std::error_code& why) {
  const kernel_calls& calls = kernel_of_caller();
  int both[2];
  set(why, calls.socketpair(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both));
  if (why) return {};
  fd_handle first;
  try {
    first = fd_handle(fd_record::take_over(both[0], calls, traits));
  } catch (...) {
    calls.close(both[1]);
    throw;
  }
  return {std::move(first), fd_handle(fd_record::take_over(both[1], calls, traits))};
}

fd_handle adopt_socket(int fd, fd_traits traits) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
    throw std::system_error(errno, std::generic_category(), "adopt descriptor " + std::to_string(fd));
  return fd_handle(fd_record::take_over(fd, kernel_of_caller(), traits));
}

void set_flag(fd_record& r, int level, int name, bool on, std::error_code& why) noexcept {
  const int value = on ? 1 : 0;
  set(why, r.calls().setsockopt(r.fd(), level, name, &value, sizeof value));
}

void bind_to(fd_record& r, const net::endpoint& at, std::error_code& why) noexcept {
  set(why, r.calls().bind(r.fd(), at.data(), at.size()));
}

void listen_at(fd_record& r, const net::endpoint& at, const net::listen_options& o, std::error_code& why) noexcept {
  if (at.family() != net::address_family::local) {
    set_flag(r, SOL_SOCKET, SO_REUSEADDR, true, why);
    if (why) return;
    if (o.reuse_port) set_flag(r, SOL_SOCKET, SO_REUSEPORT, true, why);
    if (why) return;
  }
  bind_to(r, at, why);
  if (!why) set(why, r.calls().listen(r.fd(), o.backlog));
}

namespace {

// One connection, or an error below zero. Connections that have failed before are skipped.
std::ptrdiff_t accept_once(const kernel_calls& calls, int fd) noexcept {
  std::ptrdiff_t accepted;
  do accepted = outcome_of(calls.accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  while (accepted < 0 && concerns_one_connection(static_cast<int>(-accepted)));
  return accepted;
}

fd_handle connection_of(fd_record& listener, std::ptrdiff_t fd, std::error_code& why) try {
  if (why) return {};
  return fd_handle(fd_record::take_over(static_cast<int>(fd), listener.calls(), listener.traits()));
} catch (const std::bad_alloc&) {
  why = std::make_error_code(std::errc::not_enough_memory);
  return {};
}

}  // namespace

fd_handle accept(fd_record& listener, const limit& l, std::error_code& why) {
  const std::ptrdiff_t fd = transfer(listener, side::read, 0, {accept_kind, l}, why,
                                     [&](int number) noexcept { return accept_once(listener.calls(), number); });
  return connection_of(listener, fd, why);
}

fd_handle try_accept(fd_record& listener, std::error_code& why) {
  const std::ptrdiff_t fd = try_transfer(listener, side::read, 0, why,
                                         [&](int number) noexcept { return accept_once(listener.calls(), number); });
  return connection_of(listener, fd, why);
}

namespace {

// A Unix socket whose listener has a full queue says EAGAIN, and no event tells when there is room.
void connect_local(fd_record& r, const net::endpoint& to, const limit& l, std::error_code& why) {
  using namespace std::chrono_literals;
  for (auto pause = 1ms;; pause = std::min(2 * pause, 20ms)) {
    {
      const use in_use(r);
      why = closed_by_another();
      if (in_use) set(why, r.calls().connect(r.fd(), to.data(), to.size()));
    }
    if (why != std::errc::resource_unavailable_try_again) return;
    const auto now = detail::clock_now();
    if (now >= l.until) {
      why = std::make_error_code(std::errc::timed_out);
      return;
    }
    sleep_until(std::min<detail::clock::time_point>(now + pause, l.until), l.where);
  }
}

}  // namespace

// A second connect() tells how the first one went: EALREADY while it goes on, EISCONN or its error when it is over. One
// that a signal has interrupted goes on, too.
std::ptrdiff_t connect_once(fd_record& r, const net::endpoint& to) noexcept {
  std::ptrdiff_t result;
  do result = outcome_of(r.calls().connect(r.fd(), to.data(), to.size()));
  while (result == -EINTR);
  if (result == -EISCONN) return 0;
  return result == -EINPROGRESS || result == -EALREADY ? -EAGAIN : result;
}

void connect(fd_record& r, const net::endpoint& to, const limit& l, std::error_code& why) {
  if (to.family() == net::address_family::local) return connect_local(r, to, l, why);
  (void)transfer(r, side::write, 0, {connect_kind, l}, why, [&](int) noexcept { return connect_once(r, to); });
}

namespace {

[[noreturn]] void refuse_family(const net::endpoint& e, const char* call, const char* needed) {
  throw usage_error(std::string(call) + " needs " + needed + ", and got " +
                    (e.family() == net::address_family::none ? "none" : e.to_string()));
}

}  // namespace

int require_internet(const net::endpoint& e, const char* call) {
  if (e.family() == net::address_family::v4) return AF_INET;
  if (e.family() == net::address_family::v6) return AF_INET6;
  refuse_family(e, call, "an IPv4 or IPv6 address");
}

void require_local(const net::endpoint& e, const char* call) {
  if (e.family() != net::address_family::local) refuse_family(e, call, "the address of a Unix socket");
}

net::endpoint local_endpoint(fd_record& r) {
  return ask_for_endpoint(
      r, [&](int fd, sockaddr* to, socklen_t* size) { return r.calls().getsockname(fd, to, size); },
      "ask for the local address of");
}
net::endpoint remote_endpoint(fd_record& r) {
  return ask_for_endpoint(
      r, [&](int fd, sockaddr* to, socklen_t* size) { return r.calls().getpeername(fd, to, size); },
      "ask for the remote address of");
}

std::string text_of_number(int fd) {
  switch (fd) {
    case 0: return "standard input";
    case 1: return "standard output";
    case 2: return "standard error";
    default: return "descriptor " + std::to_string(fd);
  }
}

std::string text_of_remote(fd_record& r) try {
  if (r.traits().kind == fd_kind::pipe) return r.is_closed() ? "a closed pipe" : "a pipe";
  sockaddr_storage room{};
  socklen_t size = sizeof room;
  if (const use in_use(r); in_use && r.traits().kind == fd_kind::socket &&
                           r.calls().getpeername(r.fd(), reinterpret_cast<sockaddr*>(&room), &size) == 0)
    return net::endpoint(reinterpret_cast<sockaddr*>(&room), size).to_string();
  return r.is_closed() ? "a closed descriptor" : text_of_number(r.fd());
} catch (const std::system_error&) {
  return "an address of an unknown family";
}

void throw_if(const std::error_code& why, const char* operation, fd_record& r) {
  if (why) throw std::system_error(why, std::string(operation) + " " + text_of_remote(r));
}

void throw_if(const std::error_code& why, const char* operation, const net::endpoint& at) {
  if (why) throw std::system_error(why, std::string(operation) + " " + at.to_string());
}

}  // namespace weft::inline v1::io
