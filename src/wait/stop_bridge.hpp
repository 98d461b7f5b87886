// Cancellation that is passed on to stop tokens. A stop_on_cancel object is a *bridge*. Whoever requests the
// cancellation of a task whose word says `bridged` stops the sources of the task's bridges.
//
// wait.B1. No cancellation misses a bridge. The bridge is in its bucket before it sets the bit, and both sides change
//     the same word: bridge() sees a canceller that came before the bit, and one that comes after it sees the bit.
//     test wait/stop_bridge_*
//     A canceller that has seen the bit may find the bridge gone from the bucket. Therefore a bridge that ends while
//     cancellation is requested stops its source itself. (That last step by code: no test meets the moment between the
//     bit and the look at the bucket.)
// wait.B2. A source is copied under the bucket's lock and stopped without it, because its callbacks are user code.
//     test wait/a_callback_may_make_a_bridge_*
#pragma once

#include "task/task.hpp"

namespace weft::inline v1::waits {

// Called by whoever has requested the cancellation of t, and holds a reference to it. The first function stops the
// sources of all bridges of t. The second is for the cancellation of a scope that t has open: it stops those of bridges
// that were made inside that scope. is_within() decides; `innermost` is nullptr if there was no scope around the
// bridge.
void tell_bridges(task::record& t) noexcept;
void tell_bridges(task::record& t, bool (*is_within)(const void* innermost, const void* scope) noexcept,
                  const void* scope) noexcept;

}  // namespace weft::inline v1::waits
