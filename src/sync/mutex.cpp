#include "sync/mutex.hpp"

#include "base/check.hpp"
#include "wait/thread_waiter.hpp"
#include <weft/errors.hpp>
#include <weft/mutex.hpp>

namespace weft::inline v1::locks {

using task::wake_reason;

// ---- the word and the list ------------------------------------------------------------------------------------------

bool mutex_core::take_for(claimant& c) noexcept {
  state w = word_.load(base::relaxed);
  while ((w & held) == 0) {
    const state next = (c.woken ? w & ~woken : w) | held;
    // acquire as in try_take().
    if (!word_.compare_exchange_weak(w, next, base::order<"mutex.take_woken">(base::acquire), base::relaxed)) continue;
    owner_.store(c.me, base::relaxed);
    c.woken = false;
    return true;
  }
  return false;
}

// Called with the list's lock. Returns false if the mutex was free; it is then taken.
bool mutex_core::publish(claimant& c) noexcept {
  state w = word_.load(base::relaxed);
  for (;;) {
    if (base::check<"mutex.publish.free">((w & held) == 0)) {
      if (take_for(c)) return false;
      w = word_.load(base::relaxed);
      // relaxed: a holder that sees W takes the lock before it looks at the list (sync.M3).
    } else if (word_.compare_exchange_weak(w, (c.woken ? w & ~woken : w) | waiting, base::relaxed, base::relaxed)) {
      break;
    }
  }
  if (c.beaten || c.woken) {
    c.woken = false;
    c.beaten = true;
    waiters_.link_first(c);
  } else {
    waiters_.link_last(c);
  }
  return true;
}

void mutex_core::unpublish(claimant& c) noexcept {
  if (!c.linked) return;
  waiters_.unlink(c);
  if (waiters_.empty()) word_.fetch_and(~waiting, base::relaxed);
}

// Called by the holder, which has seen that K is not set. The word is its own for as long as it has the list's lock
// (sync.M4).
void mutex_core::release_to_waiter(state seen) noexcept {
  base::require((seen & held) != 0, "a mutex is unlocked that nobody holds");
  lock_.acquire();
  while (waits::node* n = waiters_.first()) {
    claimant& first = static_cast<claimant&>(*n);
    const bool hand_over = first.beaten;
    if (!waiters_.claim(first, hand_over ? wake_reason::data : wake_reason::none)) continue;
    if (hand_over) {
      owner_.store(first.me, base::relaxed);
      // relaxed: the new owner sees what we did because we resume it.
      word_.store(held | others(), base::relaxed);
    } else {
      first.woken = true;
      // release pairs with the acquire in try_take() and take_for().
      word_.store(woken | others(), base::order<"mutex.wake">(base::release));
    }
    lock_.release();
    return waits::resume(*first.who);
  }
  // All waiters have left. The word says "held" once more, so that the last access is the compare-exchange of release()
  // (sync.M5).
  word_.store(held, base::relaxed);
  lock_.release();
  release();
}

// A waiter that was woken leaves without the mutex, and passes its wake on (sync.M2).
void mutex_core::give_up_wake() noexcept {
  lock_.acquire();
  waits::node* next = nullptr;
  for (state w = word_.load(base::relaxed);;) {
    if ((w & held) == 0 && (next = waiters_.claim_first(wake_reason::none)) != nullptr) {
      // K is passed on to this waiter, whoever may take the mutex meanwhile.
      static_cast<claimant*>(next)->woken = true;
      if (waiters_.empty()) word_.fetch_and(~waiting, base::relaxed);
      break;
    }
    // Either the mutex is held, and the holder's unlock sees W, or it is free and nobody waits. K is cleared.
    if (word_.compare_exchange_weak(w, (w & held) | others(), base::relaxed, base::relaxed)) break;
  }
  lock_.release();
  if (next != nullptr) waits::resume(*next->who);
}

// ---- waiting --------------------------------------------------------------------------------------------------------

namespace {

// Returns false if the task was cancelled. It does not use fiber_wait, which yields when the budget is spent: the task
// would do so with the mutex held.
[[nodiscard]] bool lock_in_task(mutex_core& m, sched::worker& on, bool interruptible, std::source_location where) {
  waits::check_may_suspend(0, where);
  waits::task_waiter self(on, where);
  lock_operation op(m, owner_of(self.parkable()));
  waits::wait<lock_operation> waiting(op, op.node(), interruptible);
  return waits::drive(waiting, op, self).how != waits::step::cancelled;
}

void check_not_held(const mutex_core& m, owner me, std::source_location where) {
  if (m.is_held_by(me)) [[unlikely]]
    weft::detail::throw_usage("a mutex is locked by who holds it already: it would wait for itself", where);
}

[[gnu::noinline]] void lock_slowly(mutex_core& m, std::source_location where) {
  pass_suspension_point(where);
  const owner me = this_owner();
  if (m.try_take(me)) return;
  check_not_held(m, me, where);
  sched::worker* on = sched::this_worker();
  if (on == nullptr || on->current() == nullptr) {
    lock_operation op(m, me);
    (void)waits::thread_wait(op, op.node());
  } else if (!lock_in_task(m, *on, waits::can_be_cancelled(*on, *on->current()), where)) {
    waits::throw_cancelled();
  }
}

[[nodiscard]] bool wait_until(mutex_core& m, owner me, std::chrono::steady_clock::time_point when,
                              std::source_location where) {
  check_not_held(m, me, where);
  lock_operation op(m, me);
  return complete_until(op, when, where);
}

}  // namespace

void lock(mutex_core& m, std::source_location where) {
  sched::worker* on = undisturbed();
  if (on != nullptr && m.try_take(owner_of(*on->current()))) [[likely]]
    return now_held(&m, "mutex", where);
  lock_slowly(m, where);
  now_held(&m, "mutex", where);
}

bool lock_until(mutex_core& m, std::chrono::steady_clock::time_point when, std::source_location where) {
  pass_suspension_point(where);
  const owner me = this_owner();
  if (!m.try_take(me) && !wait_until(m, me, when, where)) return false;
  now_held(&m, "mutex", where);
  return true;
}

namespace {

void relock_for(owner me, mutex_core& m, std::source_location where) noexcept {
  if (m.try_take(me)) return;
  sched::worker* on = sched::this_worker();
  if (on != nullptr && on->current() != nullptr) {
    (void)lock_in_task(m, *on, false, where);
  } else {
    lock_operation op(m, me);
    (void)waits::thread_wait(op, op.node());
  }
}

}  // namespace

void relock(mutex_core& m, std::source_location where) noexcept {
  relock_for(this_owner(), m, where);
  now_held(&m, "mutex", where);
}

void unlock(mutex_core& m) noexcept {
  if constexpr (base::checked_build)
    if (m.is_held()) {
      if (!m.is_held_by(this_owner()))
        base::fail("a mutex is unlocked by another task or thread than the one that holds it");
      no_longer_held(&m);
    }
  m.release();
}

}  // namespace weft::inline v1::locks

namespace weft::inline v1 {

mutex::~mutex() {
  base::require(
      locks::core_in<locks::mutex_core>(room_).is_idle(),
      "a mutex is destroyed while it is held or waited for; let it live until every task that uses it has ended");
}
void mutex::lock(std::source_location where) { locks::lock(locks::core_in<locks::mutex_core>(room_), where); }
bool mutex::try_lock_until(std::chrono::steady_clock::time_point when, std::source_location where) {
  return locks::lock_until(locks::core_in<locks::mutex_core>(room_), when, where);
}
bool mutex::try_lock() noexcept { return locks::try_lock(locks::core_in<locks::mutex_core>(room_)); }
void mutex::unlock() noexcept { locks::unlock(locks::core_in<locks::mutex_core>(room_)); }
bool mutex::is_locked() const noexcept { return locks::core_in<const locks::mutex_core>(room_).is_held(); }
void detail::lock_uninterrupted(mutex& m, std::source_location where) noexcept {
  locks::relock(locks::core_in<locks::mutex_core>(m.room_), where);
}

}  // namespace weft::inline v1
