// A server, from its first connection to its end.
//
//   net::server server({.max_connections = 10'000});
//   server.serve(net::tcp_listener(net::endpoint::any(7000)), [&](net::tcp_stream s) {
//     while (server.next_request(s)) answer(s);         // false when the server drains and the client is silent
//   });
//   server.serve_until(stop.on_set());
//   std::cerr << server.drain(10s) << '\n';             // drained: 12 finished, 0 cancelled
//
// Every connection has a task. The tasks borrow the server, and what is declared above it: the server's destructor waits
// for them, as that of a task_group does. They are cancelled with their owner, and unwind.
//
// An exception that a handler lets out fails the server: its other tasks are cancelled, and serve_until() and drain()
// throw it. But a std::system_error ends only its connection: that the other side has gone is nothing special.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <source_location>
#include <system_error>
#include <utility>
#include <vector>

#include <weft/cancelled.hpp>
#include <weft/event.hpp>
#include <weft/net/accept_loop.hpp>
#include <weft/net/connection.hpp>
#include <weft/net/drain_report.hpp>
#include <weft/net/tcp.hpp>
#include <weft/net/unix.hpp>
#include <weft/select.hpp>
#include <weft/semaphore.hpp>
#include <weft/task_group.hpp>
#include <weft/text/buffered_reader.hpp>

namespace weft::inline v1::net {

class server;

// A handler is called with each connection; with the server too, if it wants it.
template <class F, class Stream>
concept connection_handler =
    std::copy_constructible<F> && (std::invocable<F&, Stream> || std::invocable<F&, Stream, server&>);

struct server_options {
  // While there are so many connections, of all listeners together, the next ones wait in the kernel's queues.
  std::size_t max_connections = semaphore::max();
};

// Made by a task, or by an outside thread for a runtime. Only the owner serves, drains and destroys.
class WEFT_API server {
 public:
  using source = std::source_location;

  explicit server(const server_options& o = {}, source where = source::current());
  explicit server(runtime& in, const server_options& o = {}, source where = source::current());
  // A server that was not drained stops at once: it closes the listeners, cancels the handlers, and waits for them.
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  // Accepts connections from now on, and calls a copy of f with each, in a task of its own. Returns the address of the
  // listener. Any number of listeners. A usage_error once the server has stopped accepting.
  template <std::derived_from<detail::socket_listener> Listener, class F>
    requires connection_handler<F, detail::accepted<Listener>>
  endpoint serve(Listener from, F f, source where = source::current());

  // Waits until the arm of a select wins: an event, a signal, a timer. Throws what a handler has thrown, when all tasks
  // of the server have ended. A cancellation point.
  template <weft::detail::arm Arm>
  void serve_until(Arm&& a, source where = source::current()) {
    const selected won =
        weft::detail::select_call<waits::preference::in_order>(where, failed_.on_set(), std::forward<Arm>(a));
    if (won.index() != 0) return;
    close_doors();  // nobody accepts any more
    handlers_.join(where);
  }

  // --- the end ------------------------------------------------------------------------------------------------------
  // Closes the listeners. Connections that wait in the kernel's queues are accepted before, as far as there is room
  // (max_connections); the others, and later clients, are refused. The file of a Unix socket stays. Always a
  // cancellation point.
  void stop_accepting();

  // Stops accepting and lets the handlers know. Those that have not ended when `limit` has passed are cancelled, and
  // unwind. Those that have still not ended after `grace` are survivors.
  //
  // Returns or throws at the latest then. If there are survivors, the server's destructor waits for them, because they
  // may borrow what is declared above it. A program that cannot wait leaves by std::_Exit. May be called again, to look
  // whether survivors have ended. A cancellation point: whoever is cancelled in it leaves the rest to the destructor.
  template <class Rep, class Period>
  drain_report drain(std::chrono::duration<Rep, Period> limit, std::chrono::nanoseconds grace = std::chrono::seconds(1),
                     source where = source::current()) {
    return drain_until(weft::detail::time_after(limit), grace, where);
  }
  drain_report drain_until(std::chrono::steady_clock::time_point when,
                           std::chrono::nanoseconds grace = std::chrono::seconds(1), source where = source::current());

  // --- handlers -----------------------------------------------------------------------------------------------------
  // Whether drain() has been called: a handler should come to its end. on_drain() is an arm of a select.
  [[nodiscard]] bool is_draining() noexcept { return draining_.is_set(); }
  [[nodiscard]] auto on_drain() { return draining_.on_set(); }
  template <std::invocable F>
  [[nodiscard]] auto on_drain(F f) {
    return draining_.on_set(std::move(f));
  }
  // Waits until there is something to read, or the end, and returns true. If the server drains and there is nothing, it
  // returns false: an idle connection is to be closed. What has arrived is still served. Always a cancellation point.
  //
  // It asks the socket. Whatever stands above it may have read more than one request: for a buffered_reader there is the
  // second form; with TLS, ask only when everything that was received has been answered.
  [[nodiscard]] bool next_request(const socket_stream& s, source where = source::current());
  template <class Stream>
  [[nodiscard]] bool next_request(buffered_reader<Stream>& in, source where = source::current()) {
    return !in.buffered().empty() || next_request(in.stream(), where);
  }

  // Connections at present. The answer was right at some moment during the call.
  [[nodiscard]] std::size_t connections() const noexcept;

 private:
  template <class Listener, class F>
  class door_for;

  // Starts the acceptor of a new door.
  void open(std::unique_ptr<detail::door> d);
  void close_doors() noexcept;

  detail::roster_owner roster_;
  event draining_;
  event failed_;  // a task of the server has thrown
  bool accepts_ = true;
  std::vector<std::unique_ptr<detail::door>> doors_;
  task_group handlers_;  // last, because the tasks borrow all the rest
};

template <class Listener, class F>
class server::door_for final : public detail::door {
 public:
  using stream = detail::accepted<Listener>;

  door_for(server& of, Listener from, F f, source where)
      : server_(of),
        listener_(std::move(from)),
        handler_(std::move(f)),
        where_(where) {}

  [[nodiscard]] endpoint address() const { return listener_.local_endpoint(); }

  // The place is taken when a connection waits, and not before: several listeners share the places.
  void accept_until_closed() override {
    detail::accept_loop connections(listener_);
    while (listener_.is_open()) {
      weft::detail::select_call<waits::preference::in_order>(where_, listener_.acceptable());
      detail::connection c(*server_.roster_);
      c.wait_for_place(where_);
      if (stream s = connections.take(where_); s.is_open()) start(std::move(c), std::move(s));
    }
  }

  void accept_waiting() override {
    constexpr int most = 1024;  // clients that connect without end must not keep the server open
    for (int i = 0; i < most; ++i) {
      detail::connection c(*server_.roster_);
      if (!c.try_to_take_place()) return;
      std::error_code ignored;
      stream s = listener_.accept_until(weft::detail::clock_now(), ignored, where_);
      if (!s.is_open()) return;
      start(std::move(c), std::move(s));
    }
  }

  void close() noexcept override { listener_.close(); }

 private:
  void start(detail::connection c, stream s) {
    c.enter(s);
    server_.handlers_.spawn([this, c = std::move(c), s = std::move(s)]() mutable {  // c ends after s
      c.task_begins();
      handle(c, std::move(s));
    });
  }

  void handle(detail::connection& c, stream s) {
    F f(handler_);
    try {
      if constexpr (std::invocable<F&, stream, server&>)
        f(std::move(s), server_);
      else
        f(std::move(s));
    } catch (const cancelled&) {
      c.was_cut_short();
      throw;
    } catch (const std::system_error&) {
      // The connection is over.
    } catch (...) {
      server_.failed_.set();
      throw;
    }
  }

  server& server_;
  Listener listener_;
  const F handler_;
  const source where_;
};

template <std::derived_from<detail::socket_listener> Listener, class F>
  requires connection_handler<F, detail::accepted<Listener>>
endpoint server::serve(Listener from, F f, source where) {
  auto d = std::make_unique<door_for<Listener, F>>(*this, std::move(from), std::move(f), where);
  const endpoint at = d->address();
  open(std::move(d));
  return at;
}

}  // namespace weft::inline v1::net
