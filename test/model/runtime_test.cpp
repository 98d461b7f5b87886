// Whole runtimes: real workers, switches, queues, timers, from the start of the first thread to the join of the last.
// whole runtime
// abstract bed
//
// With one worker all schedules are explored; with two there are too many, so random ones are, half of them by PCT: what they find is
// real, what they do not find may be there. The exhaustive tests of the parts are idle, drain, watch, park, join and timer.
#include "base/clock.hpp"
#include "event.hpp"
#include "sched/scheduler.hpp"
#include <weft/runtime.hpp>
#include <weft/this_task.hpp>

using explore::join_all;
using explore::thread;
using model::event;
namespace base = weft::base;
namespace sched = weft::sched;
namespace waits = weft::waits;

namespace {

base::thread start_any(sched::thread_role, std::function<void()> body) { return base::thread(std::move(body)); }
// One worker finds everything itself: its runtime has no monitor.
base::thread start_worker(sched::thread_role role, std::function<void()> body) {
  return role == sched::thread_role::worker ? base::thread(std::move(body)) : base::thread();
}

struct runtime : sched::scheduler {
  explicit runtime(std::size_t workers, bool stealing = true) : scheduler(options(workers, stealing)) {}
  template <class F>
  auto spawn(F f) {
    return weft::detail::spawn_in(this, nullptr, std::move(f));
  }

 private:
  static sched::scheduler_options options(std::size_t workers, bool stealing) {
    sched::scheduler_options o;
    o.workers = workers;
    o.queue_capacity = 4;
    o.stealing = stealing;
    o.elastic = false;
    sched::start_thread = workers > 1 ? &start_any : &start_worker;
    return o;
  }
};

}  // namespace

// req: W-4
MODEL_TEST(runtime_spawn_and_join, .preemptions = 3, .old_reads = 1) {
  runtime r(1);
  base::plain<int> x{0};
  r.spawn([&] { x = 1; }).join();
  model_assert(x == 1);
}

// What a detached task did is seen when close() returns.
// req: W-4
MODEL_TEST(runtime_close_waits_for_detached_tasks, .preemptions = 3, .old_reads = 1) {
  runtime r(1);
  base::plain<int> x{0};
  r.spawn([&] { x = 1; }).detach();
  r.close();
  model_assert(x == 1);
}

// Somebody who does not know the runtime wakes its last task, and is still in the middle of it when the runtime goes.
// req: W-4
MODEL_TEST(runtime_foreign_waker_against_the_end, .preemptions = 3, .old_reads = 1) {
  event e;
  auto* r = new runtime(1);
  r->spawn([&] { (void)e.wait_for(); }).detach();
  thread([&] {
    explore::when_quiet();
    e.set();
  });
  delete r;
  join_all();
}

// Refused, or waited for.
// req: W-4
MODEL_TEST(runtime_spawn_from_outside_against_close, .preemptions = 3, .old_reads = 1) {
  runtime r(1);
  base::plain<int> x{0};
  base::atomic<bool> accepted{false};
  base::thread outside([&] {
    try {
      r.spawn([&] { x = 1; }).detach();
      accepted.store(true, base::relaxed);
    } catch (const weft::runtime_stopped&) {}
  });
  r.close();
  if (accepted.load(base::relaxed)) model_assert(x == 1);
  outside.join();
}

// req: W-4
MODEL_TEST(runtime_two_workers_nested_spawns, .random = 20'000) {
  runtime r(2);
  base::atomic<int> sum{0};
  r.spawn([&] {
     auto a = weft::spawn([&] { sum.fetch_add(1, base::relaxed); });
     auto b = weft::spawn([&] { sum.fetch_add(1, base::relaxed); });
     a.join();
     b.join();
   }).join();
  model_assert(sum.load(base::relaxed) == 2);
}

// req: W-4
MODEL_TEST(runtime_two_workers_wake_and_cancel, .random = 20'000) {
  event e;
  auto* r = new runtime(2);
  auto first = r->spawn([&] { return e.wait_for() == waits::outcome::completed; });
  auto second = r->spawn([&] { return e.wait_for() == waits::outcome::completed; });
  thread([&] { first.cancel(); });
  thread([&] { e.set(); });
  first.wait();
  second.wait();
  delete r;
  join_all();
  (void)first.join();
  model_assert(second.join());
}

// One worker leaves while tasks come; without stealing too.
// req: W-4 LS-K2
MODEL_TEST(runtime_two_workers_one_retires, .random = 20'000) {
  runtime r(2, explore::choose(2) == 0);
  event e;
  auto first = r.spawn([&] { (void)e.wait_for(); });
  r.pool().retire(0);
  auto second = r.spawn([&] { e.set(); });
  first.join();
  second.join();
}

// A task computes until a timer of its own worker has fired.
// req: W-4
MODEL_TEST(runtime_two_workers_stuck_and_sleeping, .random = 20'000) {
  runtime r(2);
  base::atomic<std::uint32_t> fired{0};
  auto sleeps = r.spawn([&] {
    weft::sleep_until(std::chrono::steady_clock::time_point(std::chrono::steady_clock::duration(base::now() + 50'000)));
    fired.store(1, base::release);
    base::futex_wake(&fired, 1);
  });
  auto stuck = r.spawn([&] {
    while (fired.load(base::acquire) == 0) base::futex_wait(fired, 0);
  });
  sleeps.join();
  stuck.join();
}
