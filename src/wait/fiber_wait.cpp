#include "wait/fiber_wait.hpp"

#include <exception>

#include "base/static_init.hpp"
#include "sched/scheduler.hpp"
#include "wait/thread_waiter.hpp"
#include "weft/cancelled.hpp"

namespace weft::inline v1::wait {
namespace {

using task::record;
using task::state_word;
using task::wake_reason;

void unlock_waitable(void* w) noexcept { static_cast<waitable*>(w)->unlock(); }

void note_site(record& self, const waitable& w, const std::source_location& where) noexcept {
  self.site.reason.store(w.reason(), base::relaxed);
  self.site.object.store(w.object(), base::relaxed);
  self.site.file.store(where.file_name(), base::relaxed);
  self.site.line.store(where.line(), base::relaxed);
}

bool interruptible_now(const record& self) noexcept { return self.shields == 0 && std::uncaught_exceptions() == 0; }

enum class round : std::uint8_t { completed, cancelled, again };

// One park of a task. The lock is held on entry and free on return.
round park_once(sched::worker& on, record& self, waitable& w, node& n, bool interruptible) noexcept {
  self.wake_value = static_cast<std::uint64_t>(wake_reason::none);
  const std::uint64_t word = self.word.begin_park(interruptible ? state_word::interruptible : 0);
  n.who = &self;
  n.ticket = state_word::ticket_of(word);
  const bool cancelled = interruptible && (word & state_word::cancel_requested) != 0;
  if (cancelled || !w.publish(n)) {
    self.word.abort_park();
    w.unlock();
    return cancelled ? round::cancelled : round::completed;
  }
  sched::worker::park(on, &unlock_waitable, &w);
  // Perhaps on another worker from here on.
  switch (static_cast<wake_reason>(static_cast<std::uint64_t>(self.wake_value) & 0xff)) {
    case wake_reason::data:
    case wake_reason::signal: return round::completed;  // the waker took the node off
    case wake_reason::closed:
    case wake_reason::timeout:
    case wake_reason::cancelled:
    case wake_reason::none: break;
  }
  // Woken by somebody who does not know the list, or left word while we were PARKING: take the node off, then look again.
  w.lock();
  w.unpublish(n);
  const bool done = w.try_complete();
  w.unlock();
  if (done) return round::completed;
  return interruptible && (self.word.load() & state_word::cancel_requested) != 0 ? round::cancelled : round::again;
}

}  // namespace

record* current_task() noexcept {
  sched::worker* w = sched::this_worker();
  return w == nullptr ? nullptr : w->current();
}

outcome fiber_wait(waitable& w, node& n, const options& o) {
  sched::worker* on = sched::this_worker();
  if (on == nullptr || on->current() == nullptr) return thread_wait(w, n);
  record& self = *on->current();
  check_may_suspend(0, o.where);
  const bool interruptible = o.interruptible && interruptible_now(self);
  for (bool first = true;; first = false) {
    if (interruptible && (self.word.load() & state_word::cancel_requested) != 0) return outcome::cancelled;
    if (w.try_complete()) {
      if (first && !on->spend_budget()) on->yield();
      return outcome::completed;
    }
    note_site(self, w, o.where);
    w.lock();
    switch (park_once(*on, self, w, n, interruptible)) {
      case round::completed: return outcome::completed;
      case round::cancelled: return outcome::cancelled;
      case round::again: break;
    }
    on = sched::this_worker();
  }
}

bool claim(node& n, wake_reason why) noexcept {
  switch (n.who->word.wake(n.ticket)) {
    case task::wake_result::claimed:
      n.who->wake_value = static_cast<std::uint64_t>(why);
      return true;
    case task::wake_result::left_pending:
    case task::wake_result::stale: return false;
  }
  return false;
}

void resume(task::parkable& who) noexcept {
  if (who.what == task::parkable::kind::fiber)
    sched::scheduler::schedule(static_cast<record*>(&who));
  else
    static_cast<thread_waiter&>(who).signal();
}

void cancel(record& t) noexcept {
  if (t.word.request_cancel() != task::wake_result::claimed) return;
  t.wake_value = static_cast<std::uint64_t>(wake_reason::cancelled);
  sched::scheduler::schedule(&t);
}

bool cancel_pending(const record& self) noexcept {
  return (self.word.load() & state_word::cancel_requested) != 0 && interruptible_now(self);
}

void throw_cancelled() { throw cancelled(); }

void check_cancelled() {
  record* self = current_task();
  if (self != nullptr && cancel_pending(*self)) throw_cancelled();
}

void check_may_suspend(int locks_allowed, std::source_location where) noexcept {
  if constexpr (base::checked_build) {
    if (base::locks_held() > locks_allowed) base::fail("a task suspends while it holds one of Weft's internal locks", where);
    if (base::static_initializers_running() > 0)
      base::fail(
          "a task suspends inside the initializer of a function-local static: others that reach it would block their "
          "worker, and the guard may be released on another thread. Initialize it before, or use a global",
          where);
  }
}

}  // namespace weft::inline v1::wait
