// The runtimes of this process. Each is listed from before its first thread starts until after its last one has ended.
//
// A runtime knows nothing of the others. But what is true of all tasks of the process, e.g. that none of them can ever
// continue, is true of all runtimes together.
//
// sched.RT1. Who has the list keeps every runtime in it alive: the end of a runtime waits for the list, after its threads
//     have ended. So nobody who has the list may wait for a runtime. By code: class runtimes.
#pragma once

#include <span>
#include <vector>

#include "base/lock.hpp"

namespace weft::inline v1::sched {

class scheduler;

// Has the list for as long as it lives.
class runtimes {
 public:
  runtimes() noexcept;
  ~runtimes();
  runtimes(const runtimes&) = delete;
  runtimes& operator=(const runtimes&) = delete;
  [[nodiscard]] std::span<scheduler* const> all() const noexcept;
};

// Called by the scheduler.
void list_runtime(scheduler& s);  // throws std::bad_alloc
void unlist_runtime(scheduler& s) noexcept;  // also if it is not in the list
// In the child of a fork there are none, until it makes one.
void forget_runtimes() noexcept;

}  // namespace weft::inline v1::sched
