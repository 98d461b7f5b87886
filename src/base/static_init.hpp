#pragma once

namespace weft::inline v1::base {

// How many initializers of function-local statics the calling thread is inside of. Counted in checked builds without
// sanitizers, by standing in front of __cxa_guard_acquire; 0 elsewhere.
[[nodiscard]] int static_initializers_running() noexcept;

}  // namespace weft::inline v1::base
