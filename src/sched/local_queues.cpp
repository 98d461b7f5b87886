#include "sched/local_queues.hpp"

#include "sched/monitor_limits.hpp"

namespace weft::inline v1::sched {

void local_queues::append_overflowing(record* t) noexcept {
  chain<record> overflow;
  woken.push(t, overflow);
  spill(overflow);
}

void local_queues::push_fresh_overflowing(record* t) noexcept {
  chain<record> overflow;
  fresh.push(t, overflow);
  spill(overflow);
}

void local_queues::take_overflow(chain<record>& overflow) noexcept {
  counters_.overflow_batches.add();
  shared_.global.push(std::move(overflow));
}

record* local_queues::steal_from(local_queues& victim, bool& more) noexcept {
  counters_.steal_attempts.add();
  more = false;
  record* t = victim.woken.steal_into(woken);
  if (t == nullptr) {
    // Fresh tasks are stolen one by one, oldest first (fresh_deque.hpp says why). The first of them runs now, so that
    // their order stays.
    constexpr std::size_t most = 32;
    std::size_t n = std::min((victim.fresh.size() + 1) / 2, most);
    chain<record> overflow;
    while (n-- > 0) {
      record* stolen = victim.fresh.steal();
      if (stolen == nullptr) break;
      if (t != nullptr) {
        fresh.push(stolen, overflow);
        counters_.stolen_tasks.add();
      } else {
        t = stolen;
      }
    }
    spill(overflow);
  }
  if (t == nullptr) {
    chain<record> all = victim.inbox.take_all();
    t = all.pop_front();
    more = all.size() > 1;
    append_all(std::move(all));
  }
  if (t == nullptr) return nullptr;
  counters_.steals.add();
  counters_.stolen_tasks.add();
  return t;
}

chain<record> local_queues::drain() noexcept {
  chain<record> all;
  if (record* t = slot.take()) all.push_back(t);
  while (record* t = woken.pop()) all.push_back(t);
  while (record* t = fresh.steal()) all.push_back(t);
  all.append(inbox.take_all());
  return all;
}

chain<record> local_queues::take_over(bool only_slot, ring<record>& through) noexcept {
  chain<record> rest;
  base::step<"monitor.slot">([&] {
    if (record* t = slot.steal()) rest.push_back(t);
  });
  if (only_slot) return rest;
  if (record* t = woken.steal_into(through)) {
    rest.push_back(t);
    while (record* other = through.pop()) rest.push_back(other);
  }
  for (std::size_t i = 0; i < monitor_limits::most_taken; ++i)
    if (record* t = fresh.steal()) rest.push_back(t);
  rest.append(inbox.take_all());
  return rest;
}

}  // namespace weft::inline v1::sched
