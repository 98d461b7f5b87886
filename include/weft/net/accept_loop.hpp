// Accepting connections whatever happens.
#pragma once

#include <chrono>
#include <concepts>
#include <source_location>
#include <system_error>
#include <utility>

#include <weft/detail/clock.hpp>
#include <weft/detail/config.hpp>

namespace weft::inline v1::net::detail {

// The stream that a listener accepts: a tcp_stream, a unix_stream.
template <class Listener>
using accepted = decltype(std::declval<const Listener&>().accept());

// If descriptors or memory run out, the connection that waits is closed, so that its client is told, and the acceptor
// pauses: for 5 ms at first, and 100 ms at most.
class WEFT_API shortage {
 public:
  shortage();
  ~shortage();
  shortage(const shortage&) = delete;
  shortage& operator=(const shortage&) = delete;

  // Called when an accept has failed. Throws std::system_error if that was not for want of descriptors or memory.
  // `accept_one` accepts and closes the connection that waits. A cancellation point.
  template <std::invocable F>
  void endure(const std::error_code& why, F accept_one) {
    give_up_spare(why);
    accept_one();
    take_spare();
    pause();
  }
  void is_over() noexcept { pause_ = {}; }

 private:
  void give_up_spare(const std::error_code& why);
  void take_spare() noexcept;
  void pause();
  int spare_ = -1;  // a descriptor to give up when there are no others
  std::chrono::milliseconds pause_{0};
};

template <class Listener>
class accept_loop {
 public:
  explicit accept_loop(const Listener& l) noexcept : listener_(l) {}

  // Waits for the next connection. Returns a stream that is not open when the listener has been closed. A cancellation
  // point.
  [[nodiscard]] accepted<Listener> next(std::source_location where) {
    for (;;) {
      std::error_code why;
      auto s = listener_.accept(why, where);
      if (is_final(why)) return s;
    }
  }
  // Returns a connection that waits already. If there is none, or the listener has been closed, it returns a stream that
  // is not open. A cancellation point.
  [[nodiscard]] accepted<Listener> take(std::source_location where) {
    for (;;) {
      std::error_code why;
      auto s = accept_at_once(why, where);
      if (why == std::errc::timed_out || is_final(why)) return s;
    }
  }

 private:
  [[nodiscard]] accepted<Listener> accept_at_once(std::error_code& why, std::source_location where) {
    return listener_.accept_until(weft::detail::clock_now(), why, where);
  }
  // Whether the loop has a connection, or has come to its end.
  [[nodiscard]] bool is_final(const std::error_code& why) {
    if (!why) shortage_.is_over();
    if (!why || why == std::errc::operation_canceled) return true;
    shortage_.endure(why, [this] {
      std::error_code ignored;
      const auto refused = accept_at_once(ignored, std::source_location::current());
    });
    return false;
  }
  const Listener& listener_;
  shortage shortage_;
};

}  // namespace weft::inline v1::net::detail
