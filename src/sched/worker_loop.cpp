// The worker's own stack: its thread from start to end, and the time between tasks.
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.hpp"
#include "base/known_threads.hpp"
#include "context/overflow.hpp"
#include "sched/os_thread.hpp"
#include "sched/scheduler.hpp"
#include "sched/worker.hpp"

namespace weft::inline v1::sched {

#if defined(WEFT_READS_WORKER_INLINE)
// The variable must stay, and stay global, for the assembler code, which link-time optimization does not see.
#if defined(__clang__)
#define WEFT_KEPT gnu::used, gnu::visibility("hidden")
#else
#define WEFT_KEPT gnu::used, gnu::visibility("hidden"), gnu::externally_visible
#endif
extern "C" {
[[WEFT_KEPT]] constinit thread_local base::per_thread<worker*> weft_v1_this_worker;
}
#else
thread_local base::per_thread<worker*> weft_v1_this_worker;
// noinline and with a barrier: neither compiler may keep the answer, or the address from which it came, across a
// switch.
[[gnu::noinline]] worker* this_worker() noexcept {
  asm volatile("" ::: "memory");
  return weft_v1_this_worker.get();
}
#endif

void forget_this_worker() noexcept { weft_v1_this_worker.set(nullptr); }

worker::worker(scheduler& s, int id)
    : task_runner(s, id),
      records_(s.records()),
      random_(s.options().seed + static_cast<std::uint64_t>(id) + 1),
      timers_(make_timer_source()),
      bed_(s.polling().polled()),
      search_(*this, s, {.queues = queues_, .ticks = tick_, .sleeps_in = bed_, .random = random_}) {}

worker::~worker() { timers_->end(); }

void worker::thread_main() noexcept {
  const base::own_thread ours;
  weft_v1_this_worker.set(this);
  thread_id_.store(this_thread_id(), base::relaxed);
  base::tell_of_lock_waits(&waits_for_lock_);
  char name[16];  // the kernel's limit
  std::snprintf(name, sizeof name, "weft-%d", id_);
  (void)::pthread_setname_np(::pthread_self(), name);
  if (scheduler_.options().pinned && static_cast<std::size_t>(id_) < scheduler_.options().workers) pin_this_thread(id_);
  context::alternate_signal_stack signal_stack;
  begin_on_this_thread();
  refresh_clock(base::now());
  loop();
  stacks_.drain();
  records_.drain();
  base::tell_of_lock_waits(nullptr);
  die();
  weft_v1_this_worker.set(nullptr);
}

void worker::loop() noexcept {
  for (;;) {
    record* t = next();
    if (t == nullptr) t = search_.find();
    if (t == nullptr) break;
    run(t);
    // The task that gave way has left, and nobody runs now.
    if (gives_way()) [[unlikely]]
      give_way(false);
  }
  if (is_leaving()) drain();
}

// A task that starves for a stack may ask for what is kept here for the next task, or the monitor may.
void worker::give_caches_if_asked() noexcept {
  if (!scheduler_.without_stack().any() && !scheduler_.caches().are_asked_for()) return;
  stacks_.drain();
  records_.drain();
  keeps_caches_.store(false, base::release);  // pairs with the acquire in keeps_caches()
}

// The worker goes to work. The monitor asks for what it keeps from now on when all sleep again. The store comes before
// the fence in monitor::ensure_awake().
void worker::leave_idle() noexcept {
  keeps_caches_.store(true, base::relaxed);
  scheduler_.monitoring().ensure_awake();
}

// The worker leaves, and its tasks go to the global queue (sched.K5). If more comes to its inbox from here on, die() or
// the monitor notifies others of it. It notifies even if it has no tasks, because it may have slept in the driver, and
// another sleeper has to take its place there (sched.Q1).
void worker::drain() noexcept {
  state_.store(worker_state::draining, base::relaxed);
  chain<record> rest;
  if (record* t = take_in_hand()) rest.push_back(t);
  rest.append(queues_.drain());
  scheduler_.queues().global.push(std::move(rest));
  base::step<"drain.notify">([&] { scheduler_.notifying().notify(); });
}

// The last thing that its thread does. The inbox stays reachable for all. Nobody else looks for what came in while the
// worker drained.
void worker::die() noexcept {
  scheduler_.pool().count_out();
  state_.store(worker_state::dead, base::release);  // pairs with the acquire in keeps_caches()
  // The worker is dead before it looks at its queues. Mirror: the fence of wake_one() and wake_exactly(), after the
  // push.
  base::step<"drain.fence">([] { base::fence_seq_cst(); });
  if (base::check<"drain.left_behind">(queues_.has_visible_work())) scheduler_.notifying().notify();
}

void worker::start() {
  join();  // the thread of an earlier life in this slot
  drain_requested_.store(false, base::relaxed);
  gate_.stop_draining();
  keeps_caches_.store(true, base::relaxed);
  state_.store(worker_state::active, base::relaxed);
  try {
    thread_ = start_thread(thread_role::worker, [this] { thread_main(); });
  } catch (...) {
    request_drain();  // so that nobody sends anything to it
    state_.store(worker_state::dead, base::relaxed);
    throw;
  }
}

void worker::join() noexcept {
  if (thread_.joinable()) thread_.join();
}

}  // namespace weft::inline v1::sched
