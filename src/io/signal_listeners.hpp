// Who listens for signals, in a form that a signal handler may walk through at any time.
//
// Each listener has a word with a bit for every signal that has come and was not received, and an eventfd that counts
// those bits (EFD_SEMAPHORE). The handler sets the bit and, if it was not set, adds one to the eventfd. The receiver takes
// one from the eventfd and then takes a bit.
//
// io.S1. There are at least as many bits as the eventfd counts, because the bit is set first and taken last. So whoever
//     has taken one from the eventfd finds a bit, and the eventfd is readable only if there is a signal to receive. A
//     signal that comes between the two steps of the receiver is merged with the one that is being received.
//     test io/every_signal_of_a_storm_*, io/signals_are_arms
// io.S2. A handler never writes to an eventfd that was closed, and whose number may be a stranger's. Whoever takes a
//     listener off waits until no handler runs, and only then may the eventfd be closed.
//     test io/listeners_come_and_go_*
// io.S3. Listeners are never freed, only used again, so a handler can walk through them without a lock.
//     test io/listeners_come_and_go_*
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "io/kernel.hpp"

namespace weft::inline v1::io {

class signal_listener {
 public:
  // Begins to listen. `bell` is the eventfd, which the listener does not own. Returns nullptr if it sets `why`.
  [[nodiscard]] static signal_listener* add(std::span<const int> numbers, int bell, std::error_code& why);
  // Ends it. Nobody uses the bell from then on.
  void remove(int bell) noexcept;  // does nothing if it has another bell by now

  // Returns the lowest signal that has come, or an error as a number below zero: -EAGAIN if there is none. `bell` tells
  // whether the caller still is the one who listens: the listener may belong to somebody else by now.
  [[nodiscard]] std::ptrdiff_t receive(const kernel_calls& calls, int bell) noexcept;

 private:
  friend class signal_table;
  [[nodiscard]] int take() noexcept;
  // Called by the handler.
  void tell(int number) noexcept;

  base::atomic<std::uint64_t> wanted_{0};  // bit n - 1 stands for signal n
  base::atomic<std::uint64_t> come_{0};
  base::lock lock_;  // of receivers; the handler does not take it
  base::atomic<int> bell_{-1};  // changes with lock_
  bool is_used_ = false;  // under the table's lock
  signal_listener* next_ = nullptr;  // written before the listener can be found
};

}  // namespace weft::inline v1::io
