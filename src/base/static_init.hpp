#pragma once

namespace weft::inline v1::base {

// How many initializers of function-local statics the calling thread is inside of. Checked builds without sanitizers
// count them by interposing __cxa_guard_acquire; elsewhere this is 0.
[[nodiscard]] int static_initializers_running() noexcept;

}  // namespace weft::inline v1::base
