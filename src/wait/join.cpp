#include "wait/join.hpp"

#include "base/log.hpp"
#include "sched/scheduler.hpp"
#include "task/name.hpp"

namespace weft::inline v1::sched {

void wake_joiners(record& finished) noexcept {
  waits::node* woken = nullptr;
  WEFT_LOG(join, "task %s has ended and wakes its joiners", task::label(finished).text);
  finished.join_lock.acquire();
  while (waits::node* n = finished.join_list) {
    waits::unlink(finished.join_list, *n);
    // Under the lock nobody is half-parked. A joiner that was cancelled meanwhile is stale; it takes the lock next and finds
    // its node unlinked.
    if (!waits::claim(*n, task::wake_reason::data)) continue;
    n->next = woken;
    woken = n;
  }
  finished.join_lock.release();
  while (woken != nullptr) {
    waits::node* next = woken->next;  // the node is its owner's as soon as it runs
    waits::resume_joiner(*woken->who);
    woken = next;
  }
}

}  // namespace weft::inline v1::sched
