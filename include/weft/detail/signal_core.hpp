// The signal that event, notify, barrier and latch wait for.
#pragma once

#include <chrono>
#include <cstdint>
#include <source_location>

#include <weft/detail/config.hpp>
#include <weft/detail/sync_core.hpp>

namespace weft::inline v1::locks {

class signal_core;

inline constexpr waits::wait_kind event_kind{"event", waits::kind_number::event};
inline constexpr waits::wait_kind notify_kind{"notify", waits::kind_number::notify};
inline constexpr waits::wait_kind latch_kind{"latch", waits::kind_number::latch};
inline constexpr waits::wait_kind barrier_kind{"barrier", waits::kind_number::barrier};

// Wait until the signal is set. `takes` means that the waiter takes the signal, so each set() ends one wait.
struct until_set {
  bool takes = false;
};
// Wait until the round is over.
struct until_round_ends {
  std::uint64_t round = 0;
};

class WEFT_API signal_operation final : public waits::waitable {
 public:
  signal_operation(signal_core& s, until_set u, const waits::wait_kind& kind) noexcept
      : signal_(&s),
        kind_(&kind),
        takes_(u.takes) {}
  signal_operation(signal_core& s, until_round_ends u, const waits::wait_kind& kind) noexcept
      : signal_(&s),
        kind_(&kind),
        round_(u.round) {}

  // Never completes without the lock: a waiter that sees the signal may destroy it while the setter still holds the
  // lock.
  bool try_complete() noexcept override { return false; }
  [[nodiscard]] detail::tried try_alone() noexcept { return detail::try_with_lock(*this); }
  bool try_locked() noexcept override;
  bool publish(waits::node& n) noexcept override;
  void unpublish(waits::node& n) noexcept override;
  [[nodiscard]] base::lock* own_lock() noexcept override;
  [[nodiscard]] waits::subject what() const noexcept override { return {kind_, signal_}; }
  [[nodiscard]] waits::node& node() noexcept { return node_; }

 private:
  static constexpr std::uint64_t no_round = UINT64_MAX;
  signal_core* signal_;
  const waits::wait_kind* kind_;
  std::uint64_t round_ = no_round;
  bool takes_ = false;
  waits::node node_;
};

// A signal inside of the object that provides the memory for it.
class WEFT_API signal_room {
 public:
  constexpr signal_room() noexcept = default;
  ~signal_room();
  signal_room(const signal_room&) = delete;
  signal_room& operator=(const signal_room&) = delete;

  [[nodiscard]] signal_core& core() noexcept;

 private:
  room<4> room_;
};

// Cancellation points.
WEFT_API void wait_for(signal_core& s, until_set u, const waits::wait_kind& kind, std::source_location where);
[[nodiscard]] WEFT_API bool wait_until(signal_core& s, until_set u, const waits::wait_kind& kind,
                                       std::chrono::steady_clock::time_point when, std::source_location where);
WEFT_API void wait_for(signal_core& s, until_round_ends u, const waits::wait_kind& kind, std::source_location where);
// Never cancellation points. set_for_one gives the signal to one waiter or, if nobody waits, to the next that comes.
WEFT_API void set_for_one(signal_core& s) noexcept;
WEFT_API void set_for_all(signal_core& s) noexcept;  // and the signal stays set
WEFT_API void wake_present(signal_core& s) noexcept;  // wakes those that wait now
WEFT_API void reset(signal_core& s) noexcept;
[[nodiscard]] WEFT_API bool is_set(signal_core& s) noexcept;

}  // namespace weft::inline v1::locks
