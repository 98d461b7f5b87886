#include "time/wheel.hpp"

#include <algorithm>
#include <bit>
#include <new>

#include "base/clock.hpp"
#include "sched/alarm.hpp"
#include "sched/worker.hpp"

namespace weft::inline v1::timing {
namespace {

entry& entry_of(waits::node& n) noexcept {
  static_assert(offsetof(entry, waiter) == 0);
  return reinterpret_cast<entry&>(n);
}

}  // namespace

void wheel::insert(entry& t) noexcept {
  if (elapsed_ == 0) elapsed_ = static_cast<std::uint64_t>(base::now()) >> tick_shift;
  constexpr base::time_ns tick_ns = base::time_ns{1} << tick_shift;
  const base::time_ns rounded = t.deadline > base::never_ns - tick_ns ? base::never_ns : t.deadline + tick_ns - 1;
  // A deadline before the beginning of the clock counts as due.
  t.tick = static_cast<std::uint64_t>(std::max(rounded, base::time_ns{0})) >> tick_shift;
  if (t.tick <= elapsed_) t.tick = elapsed_ + 1;
  place(t);
  base::step<"wheel.publish">([&] { publish_earliest(); });
}

void wheel::place(entry& t) noexcept {
  const std::uint64_t differs = (t.tick ^ elapsed_) | (slots - 1);
  const int level = (63 - std::countl_zero(differs)) / 6;
  const int slot = static_cast<int>((t.tick >> (6 * level)) & (slots - 1));
  t.waiter.place = static_cast<std::uint16_t>(level * slots + slot);
  waits::link_last(lists_[t.waiter.place], t.waiter);
  occupied_[level] |= std::uint64_t{1} << slot;
}

void wheel::remove(entry& t) noexcept {
  if (!t.waiter.linked) return;
  const int place = t.waiter.place;
  waits::unlink(lists_[place], t.waiter);
  if (lists_[place] == nullptr) occupied_[place / slots] &= ~(std::uint64_t{1} << (place % slots));
}

// A lower level comes before a higher one, because what lies there differs from the wheel's time only in lower bits.
wheel::position wheel::earliest() const noexcept {
  for (int level = 0; level < levels; ++level) {
    if (occupied_[level] == 0) continue;
    const int now_slot = static_cast<int>((elapsed_ >> (6 * level)) & (slots - 1));
    const int distance = std::countr_zero(std::rotr(occupied_[level], now_slot));
    const int slot = (now_slot + distance) % slots;
    const std::uint64_t below = (std::uint64_t{1} << (6 * level)) - 1;
    const std::uint64_t above = level + 1 == levels ? 0 : elapsed_ >> (6 * (level + 1)) << (6 * (level + 1));
    return {level, slot, (above | static_cast<std::uint64_t>(slot) << (6 * level)) & ~below};
  }
  return {};
}

// A slot begins before its timers are due. If only one timer is in the slot, its own tick is published, so that the
// watcher need not wake up twice.
void wheel::publish_earliest() noexcept {
  const position p = earliest();
  base::time_ns next = base::never_ns;
  if (p.level >= 0) {
    waits::node& first = *lists_[p.level * slots + p.slot];
    next = static_cast<base::time_ns>((first.next == nullptr ? entry_of(first).tick : p.tick) << tick_shift);
  }
  // release pairs with the acquire in next_deadline(): whoever fires after seeing this deadline finds the timer.
  next_.store(next, base::release);
}

std::size_t wheel::fire(base::time_ns now, std::size_t most, sched::fired_timers& into) noexcept {
  const std::uint64_t until = static_cast<std::uint64_t>(now) >> tick_shift;
  std::size_t woken = 0;
  bool all = true;
  lock_.acquire();
  for (;;) {
    const position p = earliest();
    if (p.level < 0 || p.tick > until) break;
    all = woken < most;
    if (!all && p.level == 0) break;
    elapsed_ = p.tick;
    waits::node*& list = lists_[p.level * slots + p.slot];
    // Everything in a slot of a higher level is handled, or at least moved down. If some of it had moved and some had
    // not, the lower levels would no longer come first.
    while (list != nullptr && (woken < most || p.level != 0)) {
      waits::node* n = list;
      // Nodes and records are cold, one of each per sleeper. So the next ones are prefetched while this one is handled.
      if (n->next != nullptr) {
        __builtin_prefetch(n->next, 1);
        __builtin_prefetch(n->who, 1);
      }
      waits::unlink(list, *n);
      // The comparison is with `until` and not with this slot's tick: what is due anyway need not move down a level
      // first.
      if (entry_of(*n).tick > until || woken == most) {
        place(entry_of(*n));
      } else if (n->who->what == task::parkable::kind::alarm ||
                 base::check<"wheel.claim">(waits::claim(*n, task::wake_reason::data))) {
        ++woken;
        if (n->who->what == task::parkable::kind::fiber) {
          into.tasks.push_back(static_cast<task::record*>(n->who));
        } else {
          n->next = into.others;
          into.others = n;
        }
      }
    }
    if (list == nullptr) occupied_[p.level] &= ~(std::uint64_t{1} << p.slot);
  }
  if (all && elapsed_ != 0 && until > elapsed_) elapsed_ = until;
  publish_earliest();
  lock_.release();
  return woken;
}

void wheel::set(sched::alarm& a, base::time_ns when) noexcept {
  static_assert(sizeof(entry) <= sizeof a.timer_room);
  entry& t = *::new (a.timer_room) entry;
  t.waiter.who = &a;
  t.deadline = when;
  base::lock_guard guard(lock_);
  insert(t);
}

bool wheel::clear(sched::alarm& a) noexcept {
  entry& t = *std::launder(reinterpret_cast<entry*>(a.timer_room));
  base::lock_guard guard(lock_);
  const bool prevented = t.waiter.linked;
  remove(t);
  return prevented;
}

void wheel::end() noexcept {
  for (;;) {
    lock_.acquire();
    const position p = earliest();
    waits::node* const n = p.level < 0 ? nullptr : lists_[p.level * slots + p.slot];
    if (n != nullptr) remove(entry_of(*n));
    lock_.release();
    if (n == nullptr) return;
    if (n->who->what == task::parkable::kind::alarm) static_cast<sched::alarm*>(n->who)->timers_end();
  }
}

}  // namespace weft::inline v1::timing

namespace weft::inline v1::sched {

std::unique_ptr<timer_source> make_timer_source() { return std::make_unique<timing::wheel>(); }

void resume_others(fired_timers& f) noexcept {
  while (waits::node* n = f.others) {
    f.others = n->next;
    waits::resume(*n->who);
  }
}

}  // namespace weft::inline v1::sched
