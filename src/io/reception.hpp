// What a task has room for that waits to receive, and what was received for it. It lies in the frame of the task's
// operation (transfer.hpp), and the entry of its wait points to it.
//
// Whoever claims the task may make its call before it resumes the task (batcher.hpp). Until then everything here is the
// claimer's, as the entry is: the task has written its part before it was published, under the lock of the direction,
// and reads the answer after it was resumed.
#pragma once

#include <cstddef>

#include "base/mutation.hpp"
#include "io/direction.hpp"

namespace weft::inline v1::io {

struct reception {
  void* to;
  std::size_t size;
  // Valid if the entry is marked as `received`: a count, or an error as a number below zero, and what the direction
  // looked like before the call.
  std::ptrdiff_t outcome = 0;
  direction::view seen = 0;

  // The claimer: what it does before the call. The view is older than the call, as io.D1 demands.
  void look_at(const direction& d) noexcept { seen = d.look(); }
  // The task: what it tells the direction of the outcome. A view of its own would be younger than the call, and an edge
  // that was told in between would be lost.
  [[nodiscard]] direction::view seen_before(const direction& d) const noexcept {
    return base::check<"reception.seen">(true) ? seen : d.look();
  }
};

}  // namespace weft::inline v1::io
