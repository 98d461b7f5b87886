// Timers (src/time/wheel.*, sleep.cpp) against cancel and wake, over the real fiber_wait and claim (src/wait).
// sources: time/wheel.cpp time/sleep.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/errors.cpp wait/thread_waiter.cpp wait/join.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// time.H2. None is lost: a deadline that has passed ends the sleep, wherever the sleeper is on its way (a deadlock otherwise).
// time.H3. A timer that was removed is not fired: it may be gone (use after its end, or a task scheduled twice otherwise).
// wait.F2. Time-out, cancel and wake claim by the same word: one wins, and the node is on no list afterwards.
#include "base/clock.hpp"
#include "fiber.hpp"
#include "time/wheel.hpp"
#include <weft/cancelled.hpp>
#include <weft/this_task.hpp>

using explore::join_all;
using explore::thread;
using model::fiber;
namespace base = weft::base;
namespace task = weft::task;
namespace waits = weft::waits;
namespace wheel_of = weft::timing;

namespace {

constexpr base::time_ns tick = base::time_ns{1} << 15;
constexpr base::time_ns begin = base::time_ns{1} << 40;  // where the clock stands first

void sleep(base::time_ns until) {
  weft::sleep_until(std::chrono::steady_clock::time_point(std::chrono::steady_clock::duration(until)));
}

// Time passes, and a worker that is not the sleeper's fires what is due.
std::size_t fire_at(wheel_of::wheel& w, base::time_ns now) {
  base::pass_time(now);
  weft::sched::worker on;
  weft::sched::fired_timers due;
  const std::size_t fired = w.fire(now, SIZE_MAX, due);
  on.accept_woken_batch(std::move(due.tasks));
  resume_others(due);
  return fired;
}

// As workers do, who come again as long as something is due.
void fire_until(wheel_of::wheel& w, const base::atomic<bool>& awake) {
  for (base::time_ns now = begin + 4 * tick; !awake.load(base::relaxed); now += tick) {
    if (w.next_deadline() <= now) (void)fire_at(w, now);
    base::cpu_relax();
  }
}

// An event with a deadline: one wait on two lists, as a receive with a time limit is.
class timed_event final : public waits::waitable {
 public:
  timed_event(model::event& e, wheel_of::wheel& w, base::time_ns deadline) : event_(e), wheel_(w) {
    timer_.deadline = deadline;
  }
  bool try_complete() noexcept override { return event_.try_complete() || base::now() >= timer_.deadline; }
  bool publish(waits::node& n) noexcept override {
    if (!event_.publish(n)) return false;
    timer_.waiter.who = n.who;
    timer_.waiter.ticket = n.ticket;
    wheel_.insert(timer_);
    return true;
  }
  void unpublish(waits::node& n) noexcept override {
    event_.unpublish(n);
    wheel_.remove(timer_);
  }
  void lock() noexcept {
    event_.own_lock()->acquire();
    wheel_.own_lock().acquire();
  }
  void unlock() noexcept {
    wheel_.own_lock().release();
    event_.own_lock()->release();
  }
  base::lock* own_lock() noexcept override { return nullptr; }  // of no select
  waits::subject what() const noexcept override {
    static constexpr waits::wait_kind kind{"timed event"};
    return {&kind, this};
  }

  // The other list still has its node when one of the two has won.
  void leave(waits::node& n) noexcept {
    lock();
    unpublish(n);
    unlock();
  }

 private:
  model::event& event_;
  wheel_of::wheel& wheel_;
  wheel_of::entry timer_;
};

}  // namespace

// req: W-4 LS-T2
MODEL_TEST(timer_expiry_at_every_step_of_the_sleep, .preemptions = -1) {
  wheel_of::wheel w;
  base::atomic<bool> awake{false};
  fiber sleeper(
      [&] {
        sleep(begin + 3 * tick);
        model_assert(base::now() >= begin + 3 * tick);
        awake.store(true, base::relaxed);
      },
      &w);
  thread([&] { fire_until(w, awake); });
  join_all();
  model_assert(w.next_deadline() == base::never_ns);
}

// req: W-4 LS-T2
MODEL_TEST(timer_two_who_fire, .preemptions = 4) {
  wheel_of::wheel w;
  base::atomic<bool> awake{false};
  std::size_t fired = 0;
  fiber sleeper(
      [&] {
        sleep(begin + 3 * tick);
        awake.store(true, base::relaxed);
      },
      &w);
  thread([&] { fire_until(w, awake); });
  thread([&] { fired = fire_at(w, begin + 8 * tick); });
  join_all();
  model_assert(fired <= 1 && w.next_deadline() == base::never_ns);
}

// The sleeper's timer lies in its record, which is used for the next sleep at once: a late fire must not meet it (time.H3).
// req: W-4 LS-T1 LS-T2
MODEL_TEST(timer_expiry_against_cancel, .preemptions = -1) {
  wheel_of::wheel w;
  bool cancelled = false;
  fiber sleeper(
      [&] {
        try {
          sleep(begin + 3 * tick);
        } catch (const weft::cancelled&) {
          cancelled = true;
        }
        // Where sleep_until keeps its timer.
        model_assert(!reinterpret_cast<const wheel_of::entry*>(waits::current_task()->wait_room())->waiter.linked);
      },
      &w);
  thread([&] { (void)fire_at(w, begin + 5 * tick); });
  thread([&] { sleeper.cancel(); });
  join_all();
  model_assert((sleeper.word.load() & task::state_word::cancel_requested) != 0);
  model_assert(fire_at(w, begin + 100 * tick) == 0);  // nothing is left behind
}

// req: W-4 LS-T1 LS-T2
MODEL_TEST(timer_expiry_against_wake, .preemptions = -1) {
  wheel_of::wheel w;
  model::event e;
  base::plain<int> told{0};
  int woke = 0;
  fiber waiter([&] {
    timed_event limited(e, w, begin + 3 * tick);
    waits::node n;
    model_assert(waits::fiber_wait(limited, n, {.interruptible = true, .where = {}}) == waits::outcome::completed);
    limited.leave(n);
    model_assert(!n.linked);
    if (e.try_complete()) model_assert(told == 1);
  });
  thread([&] {
    told = 1;
    woke = e.set();
  });
  thread([&] { (void)fire_at(w, begin + 5 * tick); });
  join_all();
  model_assert(woke <= 1 && e.nobody_waits() && fire_at(w, begin + 100 * tick) == 0);
}

// req: W-4 LS-T1 LS-T2
MODEL_TEST(timer_expiry_against_wake_and_cancel, .preemptions = 4) {
  wheel_of::wheel w;
  model::event e;
  fiber waiter([&] {
    timed_event limited(e, w, begin + 3 * tick);
    waits::node n;
    const waits::outcome o = waits::fiber_wait(limited, n, {.interruptible = true, .where = {}});
    limited.leave(n);
    model_assert(!n.linked && (o == waits::outcome::completed || o == waits::outcome::cancelled));
  });
  thread([&] { e.set(); });
  thread([&] { (void)fire_at(w, begin + 5 * tick); });
  thread([&] { waiter.cancel(); });
  join_all();
  model_assert(e.nobody_waits() && fire_at(w, begin + 100 * tick) == 0);
}
