// Each round, everybody waits until all have arrived. The last to arrive calls the completion function, if there is one, while the
// others still wait; it must not throw, and is shielded from cancellation.
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

// What a barrier counts, under its signal's lock.
class WEFT_API barrier_room {
 public:
  explicit barrier_room(std::size_t expected);

  struct arrival {
    std::uint64_t round;
    bool last;  // the caller completes the round
  };
  [[nodiscard]] arrival arrive(bool and_drop, std::source_location where);
  void complete_round() noexcept;
  // A cancellation point.
  void wait(std::uint64_t round, std::source_location where);
  [[nodiscard]] std::size_t expected() noexcept;

 private:
  signal_room signal_;
  std::size_t expected_;  // in each of the next rounds
  std::size_t missing_;  // in this one
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

  // A cancellation point, always. A task that is cancelled before it arrives has not arrived. One that is cancelled while it waits
  // has, and the round is complete without it; it is expected in the next one. Until this round has ended it must neither arrive nor
  // drop out again: it would count twice.
  void arrive_and_wait(std::source_location where = std::source_location::current()) {
    if (this_task::running()) this_task::check();
    const locks::barrier_room::arrival mine = room_.arrive(false, where);
    if (mine.last)
      complete();
    else
      room_.wait(mine.round, where);
  }
  // Never a cancellation point. Arrives in this round, and is not expected any more.
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
