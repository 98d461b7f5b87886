// One wait, as an object that can be left and taken up again.
//
//   look()    tries without the lock, takes the lock, tries with it, and goes on to enter().
//   enter()   goes from RUNNING to PARKING and makes the wait discoverable (publish). The lock stays held.
//   - park -  The waiter leaves. The next stack commits PARKED and releases the lock (sched/task_runner.cpp).
//             An outside thread does both itself.
//   woken()   Either the waker has completed the operation, or the wait is taken back (unpublish) and is then cancelled
//             or looks again.
//
// Each function returns a `step` that tells its driver what to do next. Every wait of the library is driven through
// this object:
//   fiber_wait()            a task that waits for one waitable                           fiber_wait.hpp
//   thread_wait()           an outside thread that waits for one waitable                thread_waiter.cpp
//   select                  a task or a thread that waits for several                    select.cpp
//   a channel's short ways  a task that holds the lock already and begins with enter()   chan/
//   park_if                 a task that waits for nothing but its permit                 permit.cpp
// A waiter that cannot block inside of a call, such as a coroutine, returns to its resumer after `park` and calls
// woken() when it is resumed.
//
// What is waited for, W, is a waitable or a class with the same functions. A final class lets the compiler see through
// the virtual ones. W may have more, which is found by name:
//   lock(), unlock()     are called instead of taking own_lock(): a select takes several locks.
//   served(wake_value)   is called when the waker has completed the operation: a select has to leave its other lists.
//   publish_new(ticket)  is called instead of publish(entry), if W makes its entry itself.
//   park_flags           are bits of the word that say what else ends the wait: park_if is ended by a permit.
//   waits_for_tasks      says that the waiter's own spawned tasks should run next, newest first (sched/gate.hpp).
#pragma once

#include <source_location>
#include <type_traits>

#include "base/lock.hpp"
#include "base/mutation.hpp"
#include "sched/worker.hpp"
#include "task/task.hpp"
#include "wait/node.hpp"

namespace weft::inline v1::waits {

// What the driver of a wait does next.
enum class step : std::uint8_t {
  park,  // The wait is published and the lock is held: leave, and call woken() when resumed.
  completed,  // The operation is complete.
  settle,  // The operation was completed under the lock, which is free now: call settle() of what was waited for.
  cancelled,  // The cancellation of the waiting task is due, and nothing was completed.
  again,  // The waiter was woken to look again: call look().
};

// Whether cancellation may end a wait of the running task now. It may not while the task is shielded or unwinds.
[[nodiscard]] inline bool can_be_cancelled(const sched::worker& on, const task::record& self) noexcept {
  return self.shields == 0 && !on.is_unwinding();
}

template <class W>
concept has_own_locking = requires(W& w) {
  w.lock();
  w.unlock();
};
// A class whose own_lock() returns a reference always has a lock; one that returns a pointer may have none.
inline base::lock* address_of(base::lock& l) noexcept { return &l; }
inline base::lock* address_of(base::lock* l) noexcept { return l; }
template <class W>
void lock(W& w) noexcept {
  if constexpr (has_own_locking<W>)
    w.lock();
  else if constexpr (std::is_reference_v<decltype(w.own_lock())>)
    w.own_lock().acquire();
  else if (base::lock* l = w.own_lock())
    l->acquire();
}
template <class W>
void unlock(W& w) noexcept {
  if constexpr (has_own_locking<W>)
    w.unlock();
  else if constexpr (std::is_reference_v<decltype(w.own_lock())>)
    w.own_lock().release();
  else if (base::lock* l = w.own_lock())
    l->release();
}

// Notes what logs and dumps show of a parked task. Nothing else reads these fields.
inline void note_site(sched::worker& on, task::record& self, const subject& s,
                      const std::source_location& where) noexcept {
  self.waits_for.store(s.kind, base::relaxed);
  self.waits_at.store(where, base::relaxed);
  self.since_ms.store(on.coarse_ms(), base::relaxed);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): nobody writes through it
  self.waits_on().store(const_cast<void*>(s.object), base::relaxed);
}

// Goes from RUNNING to PARKING and publishes the wait, with the object's lock held. `publish` gets the ticket of this
// wait and returns whether wakers can find the wait now. Unless the result is `park`, the waiter is RUNNING again, and
// the caller releases the lock. `flags` are bits of the word that say what else ends this wait.
template <class Publish>
[[gnu::always_inline]] inline step begin_wait(task::parkable& who, bool interruptible, Publish publish,
                                              std::uint64_t flags = 0) noexcept {
  using task::state_word;
  who.wake_value = task::wake_value(task::wake_reason::none, 0);
  std::uint64_t word;
  if (interruptible) [[likely]] {  // a branch instead of a computed flag: the usual case adds a constant to the word
    word = who.word.begin_park(flags | state_word::interruptible);
    if (base::check<"wait.cancelled">((word & state_word::cancel_requested) != 0)) [[unlikely]] {
      who.word.abort_park();
      return step::cancelled;
    }
  } else {
    word = who.word.begin_park(flags);
  }
  if (publish(state_word::ticket_of(word))) [[likely]]
    return step::park;
  who.word.abort_park();
  return step::settle;
}

// Asked after the park: whether the waker has completed the operation, and so has taken the node off its list.
[[nodiscard]] inline bool was_served(const task::parkable& who) noexcept {
  return task::reason_of(who.wake_value) == task::wake_reason::data;
}

// The running task as the one who waits. It may resume on another worker after each park, so nobody keeps on().
class task_waiter {
 public:
  task_waiter(sched::worker& on, std::source_location where, bool keeps_site = false) noexcept
      : task_waiter(on, *on.current(), where, keeps_site) {}
  task_waiter(sched::worker& on, task::record& running, std::source_location where, bool keeps_site = false) noexcept
      : on_(&on),
        self_(running),
        where_(where),
        keeps_site_(keeps_site) {}

  [[nodiscard]] sched::worker& on() const noexcept { return *on_; }
  [[nodiscard]] task::record& parkable() const noexcept { return self_; }
  // Called before PARKING, so that whatever the gate has to do happens while the task is still RUNNING. The lock of
  // what is waited for is held already, if it has one. The gate takes only locks of the scheduler, which come after
  // that lock in the order of locks.
  template <class W>
  [[gnu::always_inline]] void arrive_at(W& w) noexcept {
    note(w);
    if constexpr (requires { W::waits_for_tasks; }) kept_ = on_->keep_spawned();
    on_->pass_gate_to_park();
  }
  // The wait has ended without a park. The tasks that were kept count as spawned by this task again.
  void stay() noexcept {
    if (kept_ != 0) on_->return_spawned(kept_);
  }
  // Called with the locks of `w` held. The next stack releases them, after it has committed the park.
  template <class W>
  [[gnu::always_inline]] void park(W& w) noexcept {
    if constexpr (has_own_locking<W>)
      sched::worker::park(*on_, [](void* p) noexcept { static_cast<W*>(p)->unlock(); }, &w);
    else
      sched::worker::park(*on_, nullptr, address_of(w.own_lock()));
    on_ = sched::this_worker();
  }
  // Called after user code has run, or something that may wait: the task may be on another worker now.
  void was_moved() noexcept { on_ = sched::this_worker(); }

 protected:
  template <class W>
  [[gnu::always_inline]] void note(W& w) noexcept {
    if (!keeps_site_) note_site(*on_, self_, w.what(), where_);
  }

 private:
  sched::worker* on_;
  task::record& self_;
  const std::source_location where_;
  const bool keeps_site_;  // this wait continues another one, which has noted the site
  std::uint32_t kept_ = 0;  // how many tasks of its own keep_spawned() has taken out of the gate's count
};

// The same on a worker whose gate the caller has found open. Since then somebody may have asked the worker to leave and
// closed the gate; the worker notices that when it looks up (sched.Y1).
class unhindered_waiter : public task_waiter {
 public:
  using task_waiter::task_waiter;
  template <class W>
  [[gnu::always_inline]] void arrive_at(W& w) noexcept {
    note(w);
  }
};

template <class W>
class wait {
 public:
  wait(W& what, node& entry, bool interruptible) noexcept : what_(what), entry_(entry), interruptible_(interruptible) {}

  // Looks whether the operation can complete, and goes on to enter() if it cannot.
  template <class Waiter>
  [[nodiscard]] [[gnu::always_inline]] step look(Waiter& who) noexcept {
    if (is_cancelled(who.parkable())) return step::cancelled;
    if (what_.try_complete()) return step::completed;
    lock(what_);
    if (what_.try_locked()) {
      unlock(what_);
      return step::settle;
    }
    return enter(who);
  }

  // Called with the lock held, after try_locked() has failed. The lock is still held afterwards only if the step is
  // `park`. arrive_at() tells the waiter what it is about to wait for: a task notes it and passes the suspension gate
  // (task_waiter); an outside thread has nothing to do.
  template <class Waiter>
  [[nodiscard]] [[gnu::always_inline]] step enter(Waiter& who) noexcept {
    who.arrive_at(what_);
    constexpr std::uint64_t flags = [] {
      if constexpr (requires { W::park_flags; })
        return W::park_flags;
      else
        return std::uint64_t{0};
    }();
    const step next = begin_wait(
        who.parkable(), interruptible_,
        [&](task::ticket t) noexcept {
          if constexpr (requires { what_.publish_new(t); }) {
            return what_.publish_new(t);
          } else {
            entry_.who = &who.parkable();
            entry_.ticket = t;
            return what_.publish(entry_);
          }
        },
        flags);
    if (next == step::park) [[likely]]
      return next;
    if constexpr (requires { W::waits_for_tasks; }) who.stay();
    if constexpr (!requires { what_.publish_new(task::ticket{}); }) {
      if (next == step::cancelled) what_.unpublish(entry_);  // nothing is linked, but freeze() may have announced it
    }
    unlock(what_);
    return next;
  }

  // Called by the waiter after the park.
  [[nodiscard]] [[gnu::always_inline]] step woken(const task::parkable& who) noexcept {
    const bool served = was_served(who);
    if constexpr (requires { what_.served(who.wake_value); }) {
      if (served) what_.served(who.wake_value);
    }
    if (served) return step::completed;
    return withdraw(who);
  }

  // The waker did not know the list (a canceller), or asks the waiter to look again. The node is taken off in both
  // cases, so that the next look starts from the beginning.
  [[nodiscard]] [[gnu::noinline]] step withdraw(const task::parkable& who) noexcept {
    lock(what_);
    base::step<"wait.unpublish">([&] { what_.unpublish(entry_); });
    unlock(what_);
    if constexpr (requires { what_.retract(); }) what_.retract();
    return is_cancelled(who) ? step::cancelled : step::again;
  }

 private:
  [[nodiscard]] bool is_cancelled(const task::parkable& who) const noexcept {
    return interruptible_ && (who.word.load() & task::state_word::cancel_requested) != 0;
  }

  W& what_;
  node& entry_;
  const bool interruptible_;
};

}  // namespace weft::inline v1::waits
