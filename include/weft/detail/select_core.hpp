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

// Which arm wins when several are ready: the first, or each now and then.
enum class preference : std::uint8_t { in_order, fair };

inline constexpr std::size_t nothing_ready = SIZE_MAX;

// Which arms may be tried one by one before all locks are taken: none, the first enabled one, or every one.
enum class reach : std::uint8_t { nowhere, first, everywhere };
// From which arm on a select looks, in a circle, and how far at first.
struct glance {
  std::uint32_t start;
  reach how_far;
};
[[nodiscard]] WEFT_API glance begin_select(std::size_t arms, preference p) noexcept;
// The rest of a select of which nothing was ready at first. Completes exactly one arm and returns its index; the others have left
// no trace. A cancellation point, always. or_nothing: returns nothing_ready instead of waiting. Throws usage_error if it would wait
// for ever because every arm is disabled, std::bad_alloc for a great many arms, and whatever settling the winner throws.
WEFT_API std::size_t select_with_locks(std::span<const arm> arms, preference p, std::size_t start, bool or_nothing,
                                       std::source_location where);

// Both in one, the first arm that is ready in their order.
WEFT_API std::size_t select_in_order(std::span<const arm> arms, std::source_location where);

}  // namespace weft::inline v1::waits
