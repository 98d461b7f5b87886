// Signals of the process as waits and as arms of a select.
//
//   weft::signals stop({SIGTERM, SIGINT});
//   weft::select(stop.on_signal([](int number) { … }), work.on_recv([](job j) { … }));
//
// A listener gets every signal of its set that comes from its construction on, also while nobody waits. As with POSIX, a
// signal that comes again before it was received is merged with the one before. Every listener of a signal gets it.
//
// While there is a listener of a signal, nothing else happens because of it: neither its default action nor the handler
// that the program had installed before. When the last listener of a signal goes, that handler is installed again,
// unless somebody has replaced ours meanwhile. The child of a fork has the handlers of before, and no listeners.
//
// Signals that mean that the program itself has failed cannot be listened for (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
// SIGSYS), nor can SIGKILL and SIGSTOP.
#pragma once

#include <chrono>
#include <concepts>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <span>
#include <system_error>
#include <utility>

#include <weft/detail/fd_handle.hpp>
#include <weft/net/ready_arm.hpp>
#include <weft/select.hpp>

namespace weft::inline v1 {

namespace io {
class signal_listener;
}

// An arm of a select that wins when a signal has come, and receives it.
class WEFT_API signal_arm final : public select_arm {
 public:
  signal_arm(io::fd_record& r, io::signal_listener& l) noexcept
      : listener_(&l),
        ready_(r, io::side::read),
        record_(&r) {}
  // Needs a task (usage_error).
  [[nodiscard]] detail::tried try_at_once() override { return ready_.try_at_once(); }
  [[nodiscard]] waits::arm prepare() override { return ready_.prepare(); }
  [[nodiscard]] bool complete() override;
  template <class F>
  void tell(F& f, bool is_received) {
    if (!is_received) return;  // the listener was closed
    if constexpr (std::invocable<F&, int>)
      f(number_);
    else
      f();
  }

 private:
  io::signal_listener* listener_;
  net::ready_arm ready_;
  io::fd_record* record_;
  int number_ = 0;
};

// A listener is for one task at a time: if several receive from it, each signal goes to one of them. A task that must
// not miss one makes a listener of its own.
class WEFT_API signals final {
 public:
  using source = std::source_location;
  using time_point = std::chrono::steady_clock::time_point;

  // Throws std::system_error for a signal that cannot be listened for.
  explicit signals(std::initializer_list<int> numbers) : signals(std::span(numbers.begin(), numbers.size())) {}
  explicit signals(std::span<const int> numbers);
  signals(signals&& other) noexcept;
  signals& operator=(signals&& other) noexcept;
  ~signals();

  // Waits for the next signal and returns its number; the lowest one if several have come. Always cancellation points.
  int recv(source where = source::current()) const;
  int recv(std::error_code& why, source where = source::current()) const;
  // Return nothing if the time was up first.
  [[nodiscard]] std::optional<int> recv_until(time_point when, source where = source::current()) const;
  template <class Rep, class Period>
  [[nodiscard]] std::optional<int> recv_for(std::chrono::duration<Rep, Period> time,
                                            source where = source::current()) const {
    return recv_until(detail::time_after(time), where);
  }
  [[nodiscard]] std::optional<int> try_recv() const;

  // The handler gets the number.
  [[nodiscard]] signal_arm arrived() const;
  template <class F>
    requires std::invocable<F&, int> || std::invocable<F&>
  [[nodiscard]] auto on_signal(F f) const {
    return detail::handled_arm(arrived(), std::move(f));
  }

  // Stops listening. A task that waits gets errc::operation_canceled. Closing twice is harmless.
  void close() noexcept;

 private:
  io::fd_handle bell_;
  io::signal_listener* listener_ = nullptr;
};

}  // namespace weft::inline v1
