// Parking and waking: the one place where "who wins" is decided.
//
// fiber_wait follows §4.2 of the lifecycle contract: try, PARKING, publish, switch, commit, lost-wake check. The commit is made
// by the next stack (sched/worker.cpp, arrive), for an outside thread by itself.
//
// F1. A wake that lands at any point of the park is never lost.       model/park, test wait/wake_at_every_step_*
// F2. Cancellation, time-out and close claim like any other wake.     model/cancel, test wait/cancel_*
// F3. After the park is committed no user code runs until resumed.    test wait/no_user_code_*
#pragma once

#include <concepts>
#include <cstdio>
#include <source_location>

#include "base/log.hpp"
#include "sched/worker.hpp"
#include "task/name.hpp"
#include "task/task.hpp"
#include "wait/node.hpp"

namespace weft::inline v1::waits {

enum class outcome : std::uint8_t { completed, cancelled, closed, timeout };

struct options {
  bool interruptible = true;  // a cancellation point; shields and unwinding are looked at as well
  std::source_location where = std::source_location::current();
};

// Waits on `w` with the caller's node. Works for tasks and for outside threads. On return the node is on no list.
// W is a waitable; a final class lets the compiler see through its virtual functions.
template <std::derived_from<waitable> W>
[[nodiscard]] outcome fiber_wait(W& w, node& n, const options& o);

// The outside thread's half.
[[nodiscard]] outcome thread_wait(waitable& w, node& n);

// --- wakers ---------------------------------------------------------------------------------------------------------
// With the object's lock held: claims n's waiter and writes the reason. True: the caller owns it and must call resume(),
// once, after it has released the lock; the node is the waiter's again from then on.
[[nodiscard]] inline bool claim(node& n, task::wake_reason why) noexcept {
  if (n.who->word.wake(n.ticket) != task::wake_result::claimed) return false;
  n.who->wake_value = task::wake_value(why, n.arm);
  return true;
}
void resume(task::parkable& who) noexcept;
void resume_joiner(task::parkable& who) noexcept;  // the same, behind other woken tasks
// The same, by a task that knows on which worker it runs.
inline void resume(sched::worker& on, task::parkable& who) noexcept {
  if (who.what == task::parkable::kind::fiber) [[likely]] {
    task::record& t = static_cast<task::record&>(who);
    if (t.owner == &on.owner()) [[likely]]
      return on.accept_woken(&t);
  }
  resume(who);
}

// Asks for cancellation of a task that the caller holds a reference to. Any thread.
void cancel(task::record& t) noexcept;

// --- the running task -----------------------------------------------------------------------------------------------
// The running task, or nullptr on an outside thread.
[[nodiscard]] task::record* current_task() noexcept;
// Its worker, if a call may go on at once: no cancellation is due, and there is budget left, of which one is spent.
[[nodiscard]] inline sched::worker* undisturbed() noexcept {
  sched::worker* on = sched::this_worker();
  if (on == nullptr || !on->spend_budget()) [[unlikely]]
    return nullptr;
  // With budget left there is a running task.
  if ((on->current()->word.peek() & task::state_word::cancel_requested) != 0) [[unlikely]] {
    on->return_budget();
    return nullptr;
  }
  return on;
}
// Cancellation is requested and would be thrown at a cancellation point now.
[[nodiscard]] bool cancel_pending(const task::record& self) noexcept;
[[noreturn]] void throw_cancelled();
// Throws if cancellation is pending.
void check_cancelled();
// What dumps show of a parked task, and what it finds again after the park (chan/rendezvous.cpp).
void note_site(task::record& self, const char* reason, const void* object, const std::source_location& where) noexcept;
// Aborts with a report if the running task must not suspend here (checked builds).
void report_bad_suspension(int locks_allowed, std::source_location where) noexcept;
inline void check_may_suspend(int locks_allowed, std::source_location where) noexcept {
  if constexpr (base::checked_build) report_bad_suspension(locks_allowed, where);
}

// --- implementation -------------------------------------------------------------------------------------------------
namespace detail {

// For the log: `sleep`, or, of something that waits for a task, `join of #2 "alice"`.
struct what_for {
  template <class W>
  explicit what_for(const W& w) noexcept {
    if constexpr (requires { w.target(); })
      std::snprintf(text, sizeof text, "%s of %s", w.reason(), task::label(w.target()).text);
    else
      std::snprintf(text, sizeof text, "%s", w.reason());
  }
  char text[96];
};

enum class begun : std::uint8_t { published, settle, cancelled };

// From RUNNING to published, under the object's lock: park next, with the lock. Or the park was not needed after all, or must not
// be: release the lock. `publish` gets the ticket, and says whether the node is on its list.
template <class Publish>
[[gnu::always_inline]] inline begun begin_wait(task::record& self, bool interruptible, Publish publish) noexcept {
  using task::state_word;
  self.wake_value = static_cast<std::uint64_t>(task::wake_reason::none);
  const std::uint64_t word = self.word.begin_park(interruptible ? state_word::interruptible : 0);
  const bool cancelled = base::check<"wait.cancelled">(interruptible && (word & state_word::cancel_requested) != 0);
  if (!cancelled && publish(state_word::ticket_of(word))) [[likely]]
    return begun::published;
  self.word.abort_park();
  return cancelled ? begun::cancelled : begun::settle;
}

// After the park: the waker took the node off its list, and all is told.
[[nodiscard]] inline bool was_served(const task::record& self) noexcept {
  const task::wake_reason why = task::reason_of(self.wake_value);
  return why == task::wake_reason::data || why == task::wake_reason::signal;
}

enum class round : std::uint8_t { completed, settle, cancelled, again };

// After the park, if not: woken by somebody who does not know the list, or told to look again. The node is taken off first.
template <class W>
round end_wait(const task::record& self, W& w, node& n, bool interruptible) noexcept {
  w.lock();
  base::step<"wait.unpublish">([&] { w.unpublish(n); });
  w.unlock();
  return interruptible && (self.word.load() & task::state_word::cancel_requested) != 0 ? round::cancelled
                                                                                       : round::again;
}

// One park of a task for something that could not be completed under the lock, which is held on entry and free on return. A W that
// is no waitable names its lock.
template <class W>
[[gnu::always_inline]] inline round park_locked(sched::worker& on, task::record& self, W& w, node& n,
                                                bool interruptible) noexcept {
  const begun how = begin_wait(self, interruptible, [&](task::ticket t) noexcept {
    n.who = &self;
    n.ticket = t;
    return w.publish(n);
  });
  if (how != begun::published) {
    w.unlock();
    return how == begun::cancelled ? round::cancelled : round::settle;
  }
  if constexpr (requires { W::waits_for_tasks; }) on.keep_spawned();
  if constexpr (std::derived_from<W, waitable>)
    sched::worker::park(on, [](void* p) noexcept { static_cast<W*>(p)->unlock(); }, &w);
  else
    sched::worker::park(on, nullptr, &w.own_lock());
  // Perhaps on another worker from here on.
  return was_served(self) ? round::completed : end_wait(self, w, n, interruptible);
}

}  // namespace detail

template <std::derived_from<waitable> W>
outcome fiber_wait(W& w, node& n, const options& o) {
  sched::worker* on = sched::this_worker();
  if (on == nullptr || on->current() == nullptr) return thread_wait(w, n);
  task::record& self = *on->current();
  check_may_suspend(0, o.where);
  const bool interruptible = o.interruptible && self.shields == 0 && !on->is_unwinding();
  w.prepare();
  for (bool first = true;; first = false) {
    if (interruptible && (self.word.load() & task::state_word::cancel_requested) != 0) return outcome::cancelled;
    if (w.try_complete()) {
      WEFT_LOG(park, "task %s does not park for %s: already complete", task::label(self).text,
               detail::what_for(w).text);
      if (first && !on->spend_budget()) on->yield();
      return outcome::completed;
    }
    note_site(self, w.reason(), w.object(), o.where);
    w.lock();
    detail::round how = detail::round::settle;
    if (w.try_locked())
      w.unlock();
    else
      how = detail::park_locked(*on, self, w, n, interruptible);
    switch (how) {
      case detail::round::settle:
        w.settle();
        on = sched::this_worker();  // the move of an element may have suspended, and moved us
        if (first && !on->spend_budget()) on->yield();
        return outcome::completed;
      case detail::round::completed: return outcome::completed;
      case detail::round::cancelled: return outcome::cancelled;
      case detail::round::again: break;
    }
    on = sched::this_worker();
  }
}

inline void note_site(task::record& self, const char* reason, const void* object,
                      const std::source_location& where) noexcept {
  self.waits_for.store(reason, base::relaxed);
  self.waits_at.store(where, base::relaxed);
  self.waits_on.store(const_cast<void*>(object),
                      base::relaxed);  // NOLINT(cppcoreguidelines-pro-type-const-cast): who reads it knows
}

}  // namespace weft::inline v1::waits
