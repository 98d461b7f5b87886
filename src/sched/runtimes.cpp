#include "sched/runtimes.hpp"

#include <algorithm>
#include <new>

namespace weft::inline v1::sched {
namespace {

// Never destroyed, because a runtime may be static.
struct list {
  base::lock guard;
  std::vector<scheduler*> all;  // under the lock
};

list& the_list() noexcept {
  alignas(list) static std::byte room[sizeof(list)];
  static list* const made = ::new (room) list;
  return *made;
}

}  // namespace

runtimes::runtimes() noexcept { the_list().guard.acquire(); }
runtimes::~runtimes() { the_list().guard.release(); }
std::span<scheduler* const> runtimes::all() const noexcept { return the_list().all; }

void list_runtime(scheduler& s) {
  base::lock_guard hold(the_list().guard);
  the_list().all.push_back(&s);
}

void unlist_runtime(scheduler& s) noexcept {
  base::lock_guard hold(the_list().guard);
  std::erase(the_list().all, &s);
}

// Another thread may have had the list when the process was forked. What it was doing to it is left as it is.
void forget_runtimes() noexcept { ::new (&the_list()) list; }

}  // namespace weft::inline v1::sched
