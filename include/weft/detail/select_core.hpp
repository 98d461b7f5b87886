// Waiting for the first of several waitables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>

#include <weft/detail/waitable.hpp>

namespace weft::inline v1::waits {

// `what` is nullptr in a disabled arm.
struct arm {
  waitable* what = nullptr;
  node* entry = nullptr;
};

// Which arm wins when several are ready: the first of them, or any of them, each with the same probability.
enum class preference : std::uint8_t { in_order, fair };

inline constexpr std::size_t nothing_ready = SIZE_MAX;

// The order in which a select looks at its arms. For up to sixteen arms it is one word of four-bit numbers, the first
// in the lowest bits. A longer list of arms is looked at from front to back, or in the order of a list of numbers.
class look_order {
 public:
  static constexpr std::size_t most_packed = 16;
  static constexpr std::uint64_t front_to_back = 0xfedc'ba98'7654'3210;

  constexpr look_order() noexcept = default;  // from front to back
  explicit constexpr look_order(std::uint64_t packed) noexcept : packed_(packed) {}
  explicit look_order(std::span<const std::uint32_t> all) noexcept : long_(all.data()) {}

  // The number of the first of n arms, in this order, for which f(number) is true; nothing_ready if there is none.
  template <class F>
  [[nodiscard]] std::size_t find(std::size_t n, F&& f) const {
    if (n <= most_packed) [[likely]] {
      std::uint64_t rest = packed_;
      for (; n != 0; --n, rest >>= 4)
        if (const std::size_t i = rest & 15; f(i)) return i;
    } else {
      for (std::size_t k = 0; k < n; ++k)
        if (const std::size_t i = long_ == nullptr ? k : long_[k]; f(i)) return i;
    }
    return nothing_ready;
  }

 private:
  std::uint64_t packed_ = front_to_back;
  const std::uint32_t* long_ = nullptr;
};

// Which arms may be tried one by one before all locks are taken: none, the first enabled one, or every one.
enum class reach : std::uint8_t { nowhere, first, everywhere };
// How a select begins: the order in which it looks at its arms (up to sixteen), and how many it may try before it takes
// locks.
struct glance {
  std::uint64_t order;
  reach how_far;
};
[[nodiscard]] WEFT_API glance begin_select(std::size_t arms, preference p) noexcept;
// Fills in the numbers from 0 on, in any order, each order with the same probability. For more than sixteen arms.
WEFT_API void draw_order(std::span<std::uint32_t> all) noexcept;
// The rest of a select that has found nothing ready at first. Completes exactly one arm and returns its index; the
// others leave no trace. Always a cancellation point. With or_nothing it returns nothing_ready instead of waiting.
// Throws usage_error if it would wait for ever because every arm is disabled, std::bad_alloc if memory for a great many
// arms cannot be had, and whatever settling the winner throws.
WEFT_API std::size_t select_with_locks(std::span<const arm> arms, preference p, look_order order, bool or_nothing,
                                       std::source_location where);

// Takes the waitable's lock for one look at it. For waitables whose settle() has nothing to do.
[[nodiscard]] WEFT_API bool look_with_lock(waitable& w) noexcept;

// A whole ordered select: begin_select() and select_with_locks() with preference::in_order.
WEFT_API std::size_t select_in_order(std::span<const arm> arms, std::source_location where);

}  // namespace weft::inline v1::waits
