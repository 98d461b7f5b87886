// Connecting to the first of several addresses that answers (RFC 8305), with sockets. connect_order.hpp says which address
// is tried when; here is the task, or outside thread, that tries them all.
//
// One caller does everything: it begins to connect without waiting, and then waits for all sockets at once. Rejected: a
// task for each attempt. The attempts would have to be joined after a winner is found, and a cancelled caller would have
// to wait for them.
//
// Nobody else knows the sockets of a race, so they are used without counting uses (fd_life.hpp).
//
// io.C1. When run() returns or throws, every socket is closed but that of the winner.
//     test io/a_black_hole_*, io/cancellation_during_a_connect_*
// io.C2. A race waits only while an attempt may still succeed or an address is left, and not beyond its time.
//     test io/when_all_addresses_refuse_*, io/the_time_limit_*
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <system_error>
#include <vector>

#include "io/connect_order.hpp"
#include "io/socket.hpp"
#include <weft/net/connect_options.hpp>

namespace weft::inline v1::io {

// A socket that is not connected yet, with the options set.
[[nodiscard]] fd_handle open_for_connect(const kernel_calls& calls, const net::endpoint& to,
                                         const net::connect_options& o, std::error_code& why);

class connect_race {
 public:
  // The addresses, at least one, are tried in this order. The options must outlive the race.
  connect_race(const kernel_calls& calls, const std::vector<net::endpoint>& order, const net::connect_options& o);

  // Returns the connected socket, or an empty handle and the reason: that of the first address, or errc::timed_out. Called
  // once. A cancellation point.
  [[nodiscard]] fd_handle run(const limit& l, std::error_code& why);
  // What became of each address, for a message: " at ADDRESS" if there was one, and otherwise " (ADDRESS: reason; …)".
  [[nodiscard]] std::string story() const;

 private:
  enum class phase : std::uint8_t { not_tried, waiting, failed };
  struct attempt {
    net::endpoint to;
    phase now = phase::not_tried;
    fd_handle socket = {};  // while it is waiting
    std::error_code why = {};
  };

  void begin(std::size_t i);
  // Asks the kernel how far the attempt is. The first that is connected is the winner.
  void look_at(std::size_t i);
  void fail(std::size_t i, std::error_code why);
  [[nodiscard]] bool has_news(const attempt& a) const noexcept;
  // Returns when there may be something new about an attempt, or when the time has come.
  void wait_for_news(detail::clock::time_point until, std::source_location where);
  void wait_in_task(detail::clock::time_point until, std::source_location where);
  void wait_on_thread(detail::clock::time_point until);

  const kernel_calls& calls_;
  const net::connect_options& options_;
  connect_attempts plan_;
  std::vector<attempt> attempts_;
  fd_handle winner_;
};

}  // namespace weft::inline v1::io
