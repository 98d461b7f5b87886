#include "sync/caller.hpp"

#include "base/thread.hpp"

namespace weft::inline v1::locks {
namespace {

thread_local base::per_thread<owner> this_thread_owner;
base::atomic<owner> threads_seen{0};

// noinline, because a task may call this on one thread and again on another.
[[gnu::noinline]] owner owner_of_this_thread() noexcept {
  asm volatile("" ::: "memory");
  // Threads get small numbers; the values of tasks contain an address.
  if (this_thread_owner.get() == 0) this_thread_owner.set(threads_seen.fetch_add(1, base::relaxed) + 1);
  return this_thread_owner.get();
}

}  // namespace

owner this_owner() noexcept {
  const task::record* self = waits::current_task();
  return self != nullptr ? owner_of(*self) : owner_of_this_thread();
}

void pass_suspension_point(std::source_location where) {
  sched::worker* on = sched::this_worker();
  if (on == nullptr || on->current() == nullptr) return;
  waits::check_cancelled();
  if (on->spend_budget()) return;
  waits::check_may_suspend(0, where);
  on->yield();
}

}  // namespace weft::inline v1::locks
