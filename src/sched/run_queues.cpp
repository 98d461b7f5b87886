#include "sched/run_queues.hpp"

#include <algorithm>

#include "base/log.hpp"

namespace weft::inline v1::sched {

// After some urgent tasks in a row the others get their turn.
record* run_queues::next_urgent() noexcept {
  constexpr std::uint8_t most_in_a_row = 8;
  if (++urgent_runs_ <= most_in_a_row)
    if (record* t = shared().urgent.take_share(1, 1).pop_front()) return t;
  urgent_runs_ = 0;
  return nullptr;
}

record* run_queues::next_at_look(base::time_ns now) noexcept {
  // The oldest fresh task does not have its turn at every look. Each time, a fork tree grows another branch at its
  // root, whose stacks stay in use until the branch is done.
  constexpr base::time_ns oldest_fresh_every = 1'000'000;
  constexpr std::uint32_t background_every = 16;
  if (++looks_ % background_every == background_every - 1 && shared().background.size() != 0)
    if (record* t = next_in_background()) return t;
  // It also has its turn at one look in four at most: with long tasks each look comes a millisecond after the last.
  if (looks_ % 4 == 1 && now - oldest_started_ >= oldest_fresh_every) {
    oldest_started_ = now;
    if (record* t = fresh.steal()) return t;
  }
  if (looks_ % 2 == 0)
    if (record* t = next_in_inbox()) return t;
  if (record* t = next_in_global()) return t;
  return next_in_inbox();
}

// Whether more waits than the ring has room for; or anything at all, if the ring has no room for a share even when it is
// empty. While the ring stays full of tasks that came later, those outside have a turn at each of these looks
// nevertheless.
bool run_queues::much_waits_outside() const noexcept {
  const bool is_small = woken.capacity() / 2 < global_queue<record>::max_batch;
  return shared().global.size() > (is_small ? 0 : room_for_those_outside());
}

record* run_queues::next_in_inbox() noexcept {
  if (inbox.empty()) return nullptr;
  WEFT_LOG(inbox, "worker %d empties its inbox", worker_);
  chain<record> all = inbox.take_all();
  record* first = all.pop_front();
  const bool several = all.size() > 1;
  append_all(std::move(all));
  if (several) others_.notify_others();
  return first;
}

// How many tasks from outside the ring may take. Behind many of them a woken task would keep its stack for long, and
// its frames would have left the cache again. A woken task that found no room would go behind all that wait outside. So
// tasks from outside fill the ring only up to one share, and at most half of it.
std::size_t run_queues::room_for_those_outside() const noexcept {
  const std::size_t fill = std::min<std::size_t>(global_queue<record>::max_batch, woken.capacity() / 2);
  return fill - std::min<std::size_t>(woken.size(), fill);
}

// Takes one task to run now, and as many more as the ring has room for.
record* run_queues::next_in_global() noexcept {
  const std::size_t most = std::min(room_for_those_outside() + 1, global_queue<record>::max_batch);
  chain<record> share = shared().global.take_share(workers_.live(), most);
  record* first = share.pop_front();
  const bool several = share.size() > 1;
  append_all(std::move(share));
  if (several) others_.notify_others();
  return first;
}

void run_queues::line_up(std::size_t count) noexcept {
  chain<record> overflow;
  fresh.pop_newest(count, [&](record* t) { woken.push(t, overflow); });
  spill(overflow);
  line_end_ = woken.end();
}

}  // namespace weft::inline v1::sched
