// Waiting for the first of several waitables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>

#include <weft/detail/waitable.hpp>

namespace weft::inline v1::wait {

// `what` is nullptr in a disabled arm.
struct arm {
  waitable* what = nullptr;
  node* entry = nullptr;
};

// Which arm wins when several are ready: the first, or each now and then.
enum class preference : std::uint8_t { in_order, fair };

inline constexpr std::size_t nothing_ready = SIZE_MAX;

// Completes exactly one arm and returns its index; the others have left no trace. A cancellation point, always.
// or_nothing: returns nothing_ready instead of waiting. Throws usage_error if it would wait for ever because every arm is
// disabled, std::bad_alloc for a great many arms, and whatever settling the winner throws.
WEFT_API std::size_t select(std::span<const arm> arms, preference p, bool or_nothing, std::source_location where);

}  // namespace weft::inline v1::wait
