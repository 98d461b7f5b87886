// The worker's own stack: look for work, spin a little, sleep; fire timers meanwhile.
#include <cxxabi.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.hpp"
#include "context/overflow.hpp"
#include "sched/os_thread.hpp"
#include "sched/scheduler.hpp"
#include "sched/worker.hpp"

namespace weft::inline v1::sched {
namespace {

// Waking a sleeping thread takes some 30 µs, a task often less: look around about that long before sleeping, if that paid lately.
constexpr base::time_ns spin_ns = base::spin_time(idle_gaps::look_around);

}  // namespace

#if defined(WEFT_READS_WORKER_INLINE)
// Kept, and kept global, for the assembler, which link-time optimization does not see.
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
// noinline and with a barrier: neither compiler may keep the answer, or the address it came from, across a switch.
[[gnu::noinline]] worker* this_worker() noexcept {
  asm volatile("" ::: "memory");
  return weft_v1_this_worker.get();
}
#endif

void forget_this_worker() noexcept { weft_v1_this_worker.set(nullptr); }

worker::worker(scheduler& s, int id)
    : stacks_(s.stacks()),
      records_(s.records()),
      scheduler_(s),
      id_(id),
      random_(static_cast<std::uint64_t>(id) + 1),
      woken_(static_cast<std::uint32_t>(s.queue_capacity())),
      fresh_(s.queue_capacity()),
      timers_(make_timer_source()),
      driver_(make_futex_driver()) {
  if (base::logs(base::topic::park)) spawned_ = logs_parks;
}

worker::~worker() = default;

void worker::thread_main() noexcept {
  weft_v1_this_worker.set(this);
  thread_id_.store(this_thread_id(), base::relaxed);
  base::tell_of_lock_waits(&waits_for_lock_);
  char name[16];  // the kernel's limit
  std::snprintf(name, sizeof name, "weft-%d", id_);
  (void)::pthread_setname_np(::pthread_self(), name);
  if (scheduler_.options().pinned && static_cast<std::size_t>(id_) < scheduler_.options().workers) pin_this_thread(id_);
  exceptions_ = reinterpret_cast<task::exception_state*>(abi::__cxa_get_globals());
  context::alternate_signal_stack signal_stack;
  flow_.adopt_thread();
  loop();
  stacks_.drain();
  records_.drain();
  base::tell_of_lock_waits(nullptr);
  scheduler_.worker_died(*this);
  weft_v1_this_worker.set(nullptr);
}

void worker::loop() noexcept {
  for (;;) {
    record* t = next_local();
    if (t == nullptr) t = find_work();
    if (t == nullptr) break;
    run(t);
    if (gives_way()) [[unlikely]]
      give_way(false);
  }
}

// nullptr: the worker is to end. `searching`: it is counted as such already.
record* worker::find_work(bool searching) noexcept {
  idle_set& idle = scheduler_.idle();
  base::time_ns asleep_since = 0;  // 0: not yet
  for (;;) {
    if (drain_requested_.load(base::acquire)) {
      if (searching) scheduler_.end_search(*this);
      drain();
      return nullptr;
    }
    if (!searching) searching = idle.start_searching();
    record* t = next_local();
    if (t == nullptr && searching) {
      t = search();
      if (t != nullptr && asleep_since == 0) gaps_.found();
    }
    if (t == nullptr) t = from_background();
    if (t != nullptr) {
      state_.store(worker_state::active, base::relaxed);
      if (searching) scheduler_.end_search(*this);
      if (asleep_since != 0) gaps_.slept(base::now() - asleep_since);
      return t;
    }
    if (scheduler_.stopping()) {
      if (searching) scheduler_.end_search(*this);
      return nullptr;
    }
    // Enough others search. What keeps us from sleeping is theirs to take: do not hammer the idle set meanwhile.
    if (!searching) base::cpu_relax();
    if (asleep_since == 0) asleep_since = base::now();
    searching = sleep(searching);
    tick_.forget();
  }
}

record* worker::search() noexcept {
  state_.store(worker_state::idle_spin, base::relaxed);
  const base::time_ns until = gaps_.are_short() ? base::now() + spin_ns : 0;  // 0: one round
  base::time_ns now = 0;
  do {
    if (record* t = scheduler_.steal_for(*this)) return t;
    if (scheduler_.background().size() != 0) return nullptr;  // rather than wait for better
    base::linger(8);
    now = base::now();
    if (scheduler_.fire_timers(now, *this) != 0 || !inbox_.empty() || scheduler_.shared_work() != 0)
      if (record* t = next_local()) return t;
  } while (now < until && !scheduler_.stopping());
  return nullptr;
}

// From one victim: half of its woken tasks, half of its fresh ones, or its whole inbox.
record* worker::steal_from(worker& victim) noexcept {
  counters_.steal_attempts.add();
  record* t = victim.woken_.steal_into(woken_);
  if (t == nullptr) {
    // One by one (fresh_deque.hpp says why), oldest first; the last of them runs now, so that the order stays.
    constexpr std::size_t most = 32;
    std::size_t n = std::min((victim.fresh_.size() + 1) / 2, most);
    chain<record> overflow;
    while (n-- > 0) {
      record* stolen = victim.fresh_.steal();
      if (stolen == nullptr) break;
      if (t != nullptr) {
        fresh_.push(stolen, overflow);
        counters_.stolen_tasks.add();
      } else {
        t = stolen;
      }
    }
    if (!overflow.empty()) scheduler_.take_overflow(*this, std::move(overflow));
  }
  if (t == nullptr) {
    chain<record> all = victim.inbox_.take_all();
    t = all.pop_front();
    if (!all.empty()) accept_batch(std::move(all));
  }
  if (t == nullptr) return nullptr;
  counters_.steals.add();
  counters_.stolen_tasks.add();
  return t;
}

// What is kept for the next task, if somebody asks for it: a task that starves for a stack, or the monitor.
void worker::give_caches() noexcept {
  if (!scheduler_.is_starving() && !scheduler_.asks()) return;
  stacks_.drain();
  records_.drain();
  keeps_caches_.store(false, base::release);  // pairs with the acquire in scheduler::somebody_keeps()
}

// To work: what it keeps from now on the monitor asks for when all sleep again. Before the fence in monitor::ensure_awake().
void worker::leave_idle() noexcept {
  keeps_caches_.store(true, base::relaxed);
  scheduler_.left_idle();
}

// Until woken. True: the waker has counted us as searching.
bool worker::sleep(bool was_searching) noexcept {
  state_.store(worker_state::sleep, base::relaxed);
  counters_.sleeps.add();
  idle_set& idle = scheduler_.idle();
  idle.enter_sleep(id_, was_searching);
  for (;;) {
    // W3 of idle_set.hpp.
    if (base::check<"idle.w3">(scheduler_.work_within_reach(*this)) ||
        base::check<"idle.stopping">(scheduler_.stopping()) ||
        base::check<"drain.asleep">(drain_requested_.load(base::acquire)))
      break;
    if (base::check<"idle.w3_elsewhere">(scheduler_.work_elsewhere(*this) && !idle.left_to_searcher())) break;
    scheduler_.tell_if_quiet();
    give_caches();
    const base::time_ns deadline = scheduler_.watch_from(*this);
    driver_->sleep(deadline);
    const bool was_watcher = scheduler_.stop_watching(*this);
    // The set, not the token, says whether we were woken to work: a token may be an old one, or only ask for a new watcher.
    if (!idle.is_asleep(id_)) {
      leave_idle();
      if (was_watcher) scheduler_.hand_on_watch();
      return true;
    }
    // The time has come for a timer.
    if (scheduler_.timer_due(base::now())) break;
  }
  const bool by_itself = idle.leave_sleep(id_);
  leave_idle();
  if (by_itself) scheduler_.fire_timers(base::now(), *this);
  scheduler_.hand_on_watch();  // which we may have had before the last look
  // Or somebody has chosen us at this moment. Its token makes the next sleep end at once, which then looks around again.
  return !by_itself;
}

void worker::drain() noexcept {
  state_.store(worker_state::draining, base::relaxed);
  chain<record> rest;
  if (in_hand_ != nullptr) rest.push_back(std::exchange(in_hand_, nullptr));
  if (record* t = slot_.take()) rest.push_back(t);
  while (record* t = woken_.pop()) rest.push_back(t);
  while (record* t = fresh_.steal()) rest.push_back(t);
  rest.append(inbox_.take_all());
  scheduler_.global().push(std::move(rest));
  base::step<"drain.notify">([&] { scheduler_.notify(); });
}

void worker::start() {
  join();  // an earlier life
  drain_requested_.store(false, base::relaxed);
  keeps_caches_.store(true, base::relaxed);
  state_.store(worker_state::active, base::relaxed);
  thread_ = start_thread([this] { thread_main(); });
}

void worker::join() noexcept {
  if (thread_.joinable()) thread_.join();
}

}  // namespace weft::inline v1::sched
