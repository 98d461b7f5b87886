// Who requests the cancellation of a task whose word says `bridged` tells its stop_on_cancel objects.
//
// B1. The bridge is in its bucket before the bit is set, and both sides change the same word: a canceller that comes before
//     the bit is seen by bridge(), one that comes after it sees the bit.                test wait/stop_bridge_*
//     The one that it comes before may find the bridge gone again: a bridge that ends while the bit is set stops its source.
// B2. A source is copied under the bucket's lock and stopped without it: callbacks are the user's code.
#pragma once

#include "task/task.hpp"

namespace weft::inline v1::waits {

// By whoever requested cancellation; holds a reference. The second is for a scope that t has open: it tells those bridges whose
// innermost scope (nullptr: none) is within that one.
void tell_bridges(task::record& t) noexcept;
void tell_bridges(task::record& t, bool (*is_within)(const void* innermost, const void* scope) noexcept,
                  const void* scope) noexcept;

}  // namespace weft::inline v1::waits
