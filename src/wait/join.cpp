#include "wait/join.hpp"

#include <cstdio>

#include "base/log.hpp"
#include "sched/upcalls.hpp"
#include "task/name.hpp"

namespace weft::inline v1::waits {

const wait_kind join_kind{"join", kind_number::join, [](const void* object, char* text, std::size_t size) noexcept {
                            std::snprintf(text, size, "of %s",
                                          task::label(*static_cast<const task::record*>(object)).text);
                          }};

}  // namespace weft::inline v1::waits

namespace weft::inline v1::sched {

void wake_joiners(task::record& finished) noexcept {
  waits::node* woken = nullptr;
  WEFT_LOG(join, "task %s has ended and wakes its joiners", task::label(finished).text);
  finished.join_lock.acquire();
  while (waits::node* n = finished.join_list) {
    waits::unlink(finished.join_list, *n);
    // Nobody on the list is half-parked while we hold the lock (wait.A1). The claim of a joiner that was cancelled
    // meanwhile fails; that joiner takes the lock after us and finds its node unlinked.
    if (!waits::claim(*n, task::wake_reason::data)) continue;
    n->next = woken;
    woken = n;
  }
  finished.join_lock.release();
  while (woken != nullptr) {
    waits::node* next = woken->next;  // read now: the node lies in its waiter's frame, which may end once it is resumed
    waits::resume_joiner(*woken->who);
    woken = next;
  }
}

}  // namespace weft::inline v1::sched
