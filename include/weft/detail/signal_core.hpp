// What events, notify, barrier and latch wait for.
#pragma once

#include <chrono>
#include <cstdint>
#include <source_location>

#include <weft/detail/config.hpp>
#include <weft/detail/sync_core.hpp>

namespace weft::inline v1::locks {

class signal_core;

// Until the signal is set. `takes`: the one who waited takes it, so each set() ends one wait.
struct until_set {
  bool takes = false;
};
// Until the round is not this one any more.
struct until_round_ends {
  std::uint64_t round = 0;
};

class WEFT_API signal_operation final : public waits::waitable {
 public:
  signal_operation(signal_core& s, until_set u, const char* reason) noexcept
      : signal_(&s),
        reason_(reason),
        takes_(u.takes) {}
  signal_operation(signal_core& s, until_round_ends u, const char* reason) noexcept
      : signal_(&s),
        reason_(reason),
        round_(u.round) {}

  // Never without the lock: who sees the signal may destroy it, while the one who set it still has the lock.
  bool try_complete() noexcept override { return false; }
  [[nodiscard]] detail::tried try_alone() noexcept { return detail::try_with_lock(*this); }
  bool try_locked() noexcept override;
  bool publish(waits::node& n) noexcept override;
  void unpublish(waits::node& n) noexcept override;
  void lock() noexcept override;
  void unlock() noexcept override;
  [[nodiscard]] base::lock* own_lock() noexcept override;
  [[nodiscard]] const char* reason() const noexcept override { return reason_; }
  [[nodiscard]] const void* object() const noexcept override { return signal_; }
  [[nodiscard]] waits::node& node() noexcept { return node_; }

 private:
  static constexpr std::uint64_t no_round = UINT64_MAX;
  signal_core* signal_;
  const char* reason_;
  std::uint64_t round_ = no_round;
  bool takes_ = false;
  waits::node node_;
};

// A signal in the object that has room for it.
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
WEFT_API void wait_for(signal_core& s, until_set u, const char* reason, std::source_location where);
[[nodiscard]] WEFT_API bool wait_until(signal_core& s, until_set u, const char* reason,
                                       std::chrono::steady_clock::time_point when, std::source_location where);
WEFT_API void wait_for(signal_core& s, until_round_ends u, const char* reason, std::source_location where);
// Not. To one who waits, or, if none does, to the next one who comes.
WEFT_API void set_for_one(signal_core& s) noexcept;
WEFT_API void set_for_all(signal_core& s) noexcept;  // and it stays set
WEFT_API void wake_present(signal_core& s) noexcept;  // those who wait now
WEFT_API void reset(signal_core& s) noexcept;
[[nodiscard]] WEFT_API bool is_set(signal_core& s) noexcept;

}  // namespace weft::inline v1::locks
