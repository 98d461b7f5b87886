// A barrier for rounds: in each round every participant waits until all have arrived. The last one to arrive calls the
// completion function, if there is one, while the others still wait. The completion function must not throw, and it is
// shielded from cancellation.
//
//   weft::barrier together(4);                                   // or: (4, [&]() noexcept { swap_buffers(); })
//   for (…) { compute(); together.arrive_and_wait(); }
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include <weft/detail/signal_core.hpp>
#include <weft/this_task.hpp>

namespace weft::inline v1 {

namespace locks {

// The counters of a barrier. The lock of its signal protects them.
class WEFT_API barrier_room {
 public:
  explicit barrier_room(std::size_t expected);

  struct arrival {
    std::uint64_t round;
    bool last;  // the caller is the last one, and completes the round
  };
  [[nodiscard]] arrival arrive(bool and_drop, std::source_location where);
  void complete_round() noexcept;
  // A cancellation point.
  void wait(std::uint64_t round, std::source_location where);
  [[nodiscard]] std::size_t expected() noexcept;

 private:
  friend struct weft::detail::observer;

  signal_room signal_;
  std::size_t expected_;  // arrivals in each of the next rounds
  std::size_t missing_;  // arrivals that this round still lacks
};

}  // namespace locks

struct no_completion {
  void operator()() const noexcept {}
};

template <class Completion = no_completion>
class barrier {
  static_assert(std::is_nothrow_invocable_v<Completion&>,
                "the completion function must be noexcept: nobody could catch");

 public:
  explicit barrier(std::size_t expected, Completion f = Completion()) : room_(expected), completion_(std::move(f)) {}
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;

  // Always a cancellation point. A task that is cancelled before it arrives has not arrived. A task that is cancelled
  // while it waits has arrived: the round completes without it, and the next round expects it. Until this round has
  // ended, it must not call arrive_and_wait() or arrive_and_drop() again, because it would be counted twice.
  void arrive_and_wait(std::source_location where = std::source_location::current()) {
    if (this_task::running()) this_task::check();
    const locks::barrier_room::arrival mine = room_.arrive(false, where);
    if (mine.last)
      complete();
    else
      room_.wait(mine.round, where);
  }
  // Never a cancellation point. The caller arrives in this round, and later rounds do not expect it any more.
  void arrive_and_drop(std::source_location where = std::source_location::current()) {
    if (room_.arrive(true, where).last) complete();
  }
  [[nodiscard]] std::size_t expected() noexcept { return room_.expected(); }

 private:
  void complete() noexcept {
    {
      std::optional<this_task::shield> shield;
      if (this_task::running()) shield.emplace();
      completion_();
    }
    room_.complete_round();
  }

  locks::barrier_room room_;
  [[no_unique_address]] Completion completion_;
};

}  // namespace weft::inline v1
