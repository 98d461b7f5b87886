// What the tests of connecting share: hosts whose addresses answer, refuse, or do neither.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <source_location>
#include <string>
#include <vector>

#include "io/connect_host.hpp"
#include "io/fake_names.hpp"
#include "io/net.hpp"
#include "io/socket.hpp"
#include "sync/sync.hpp"

namespace connect_test {

using namespace support::usual;
using namespace support;
using io_test::fake_names;
using sync_test::named_task;
using weft::net::connect_options;
using weft::net::endpoint;
namespace io = weft::io;
using clock = std::chrono::steady_clock;

constexpr auto for_ever = connect_options::duration::max();

// On addresses of loopback with one port: .1 answers, .2 and .4 refuse.
class lan {
 public:
  lan() : listener_(endpoint::loopback(0)) {}
  [[nodiscard]] std::uint16_t port() const { return listener_.local_endpoint().port(); }
  [[nodiscard]] std::string at(const std::string& address) const { return address + ':' + std::to_string(port()); }
  [[nodiscard]] const net::tcp_listener& listener() const { return listener_; }

 private:
  net::tcp_listener listener_;
};

// 127.0.0.3 neither answers nor refuses: a listener whose queue is full.
class black_hole {
 public:
  explicit black_hole(std::uint16_t port) : at_(endpoint::v4({127, 0, 0, 3}, port)), listener_(at_, {.backlog = 0}) {
    do connect_once_more();
    while (is_connected(fillers_.back()));
  }
  ~black_hole() {
    for (const int fd : fillers_) ::close(fd);
  }
  black_hole(const black_hole&) = delete;
  black_hole& operator=(const black_hole&) = delete;

 private:
  void connect_once_more() {
    fillers_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    ASSERT_TRUE(::connect(fillers_.back(), at_.data(), at_.size()) == 0 || errno == EINPROGRESS);
  }
  // Over loopback a connection is there when connect() returns, if there is to be one.
  static bool is_connected(int fd) {
    pollfd p{fd, POLLOUT, 0};
    return ::poll(&p, 1, 0) == 1;
  }
  endpoint at_;
  net::tcp_listener listener_;
  std::vector<int> fillers_;
};

// Connects with the kernel of the test.
inline io::fd_handle reach(const io::kernel_calls& calls, std::string_view host, const net::service& port,
                           const connect_options& o = {}) {
  return io::connect_to_host(calls, host, port, o, io::limit(), nullptr);
}
inline io::fd_handle reach(const io::kernel_calls& calls, std::string_view host, const net::service& port,
                           const connect_options& o, std::error_code& why) {
  return io::connect_to_host(calls, host, port, o, io::limit(), &why);
}

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const std::system_error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

}  // namespace connect_test
