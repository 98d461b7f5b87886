// Serving connections: one task for each, at most so many at a time, until the listener is closed.
//
//   weft::with_scope([&](weft::scope& s) {
//     weft::net::serve(listener, s, [](weft::net::tcp_stream stream) { … }, {.max_connections = 10'000});
//   });
//
// server.hpp has what a server needs besides to end well.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <source_location>
#include <system_error>
#include <utility>

#include <weft/net/accept_loop.hpp>
#include <weft/net/tcp.hpp>
#include <weft/net/unix.hpp>
#include <weft/semaphore.hpp>

namespace weft::inline v1::net {

struct serve_options {
  // While there are so many connections, the next one waits in the kernel's queue.
  std::size_t max_connections = semaphore::max();
};

namespace detail {

// One of the connections that there may be at a time.
class place {
 public:
  explicit place(std::shared_ptr<semaphore> of) noexcept : of_(std::move(of)) {}
  place(place&&) noexcept = default;
  ~place() {
    if (of_ != nullptr) of_->release();
  }

 private:
  std::shared_ptr<semaphore> of_;
};

}  // namespace detail

// Calls f with each connection, in a task of the scope or group of its own, until the listener is closed. Then it
// returns; the scope waits for the connections that are left. A std::system_error that f lets out ends only its
// connection: that the other side has gone is nothing special. Any other exception fails the scope, as always. A
// cancellation point.
template <std::derived_from<detail::socket_listener> Listener, class Group, class F>
  requires std::invocable<F&, detail::accepted<Listener>>
void serve(const Listener& from, Group& in, F f, const serve_options& o = {},
           std::source_location where = std::source_location::current()) {
  const auto room = std::make_shared<semaphore>(o.max_connections);
  detail::accept_loop connections(from);
  for (;;) {
    room->acquire(1, where);
    detail::place taken(room);
    auto s = connections.next(where);
    if (!s.is_open()) return;
    in.spawn([f, taken = std::move(taken), s = std::move(s)]() mutable {  // the place is free after the stream
      try {
        f(std::move(s));
      } catch (const std::system_error&) {
        // The connection is over.
      }
    });
  }
}

}  // namespace weft::inline v1::net
