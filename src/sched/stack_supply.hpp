// Stacks for the tasks of one worker: a cache of its own, and the runtime's pool behind it.
//
// A fiber gets its stack here when it first runs, not when it is spawned. Most fresh fibers need none of their own.
// They take over the stack of the task that has just ended (task_runner::run_tasks()).
#pragma once

#include <cstddef>

#include "base/atomic.hpp"
#include "context/stack.hpp"
#include "context/switch.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

using task::record;

class stack_supply {
 public:
  // `entry` is the function with which every task begins on its stack.
  stack_supply(context::stack_pool& pool, void (*entry)(void*) noexcept) noexcept
      : pool_(pool),
        entry_(entry),
        cache_(pool) {}

  // Whether there is a stack at hand for a task that does not want a size of its own. Needs neither a lock nor the
  // system.
  [[nodiscard]] bool has_one() const noexcept { return cache_.size() != 0; }
  // Returns false if there is no stack at hand for this task.
  [[nodiscard]] bool attach_cached(record* t) noexcept {
    task::fiber& f = task::as_fiber(*t);
    if (!has_one() || f.stack_size != 0) return false;
    attach(f, cache_.take());
    return true;
  }
  // May ask the system. Returns false if there is no stack to be had.
  [[nodiscard]] bool attach_any(record* t) noexcept {
    task::fiber& f = task::as_fiber(*t);
    context::stack* s = f.stack_size == 0 ? cache_.take() : pool_.acquire(f.stack_size);
    if (s == nullptr) [[unlikely]]
      return false;
    attach(f, s);
    return true;
  }
  // The last attempt, after the cache was emptied. It also says whether others hold stacks that they may give back.
  struct last_try {
    bool attached;
    bool others_hold_some;
  };
  [[nodiscard]] last_try attach_last(record* t) noexcept {
    drain();
    task::fiber& f = task::as_fiber(*t);
    const auto result = pool_.try_acquire(f.stack_size != 0 ? f.stack_size : pool_.default_size());
    if (result.got != nullptr) attach(f, result.got);
    return {result.got != nullptr, result.others_out};
  }
  // The running task no longer needs its stack, though we are still on it. From now on the task has no place to
  // continue at: it is fresh again.
  [[nodiscard]] static context::stack* detach(record* t) noexcept {
    task::fiber& f = task::as_fiber(*t);
    context::stack* left = f.stack;
    left->owner = nullptr;
    f.stack = nullptr;
    f.set_sp(nullptr);
    return left;
  }
  // Whether a fresh task may take over the stack that we are on and that another task has left. That saves a switch and
  // a page fault. A sanitizer may forbid it.
  [[nodiscard]] bool may_take_over(const record* t, const context::stack& left) const noexcept {
    return context::stacks_may_be_shared && task::as_fiber(*t).stack_size == 0 && left.size == pool_.default_size();
  }
  static void take_over(record* t, context::stack* left) noexcept {
    task::as_fiber(*t).stack = left;
    left->owner = t;
  }
  // Gives back what detach() returned. The caller is on another stack. `keep` says that the stack may stay here for the
  // next task; otherwise others wait for one.
  void give_back(context::stack* s, bool keep) noexcept {
    s->annotations.end();
    if (!keep || !cache_.put(s)) pool_.release(s);
  }
  // Gives everything to the pool.
  void drain() noexcept { cache_.drain(); }

 private:
  void attach(task::fiber& f, context::stack* s) noexcept {
    f.stack = s;
    s->owner = static_cast<record*>(&f);
    s->annotations.start_on(*s);
    f.set_sp(context::prepare(s->top(), entry_));
  }

  context::stack_pool& pool_;
  void (*const entry_)(void*) noexcept;
  context::stack_cache cache_;
};

}  // namespace weft::inline v1::sched
