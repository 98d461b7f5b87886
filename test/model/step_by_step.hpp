// The real scheduler and its real workers (`// whole runtime`), but no threads of their own: a test runs single steps of a worker
// on its own virtual threads, so that a search of one protocol is not lost in the beginning and end of a runtime.
#pragma once

#include "base/clock.hpp"
#include "base/thread.hpp"
#include "explore/explore.hpp"
#include "item.hpp"
#include "sched/scheduler.hpp"

namespace weft::inline v1::sched {

// See src/sched/test_seam.hpp.
struct test_seam {
  explicit test_seam(std::size_t workers, bool stealing = true) : scheduler_(options(workers, stealing, {})) {}
  test_seam(std::size_t workers, driver_factory make_driver)
      : scheduler_(options(workers, true, std::move(make_driver))) {}

  [[nodiscard]] scheduler& all() noexcept { return scheduler_; }
  [[nodiscard]] worker& at(std::size_t i) noexcept { return scheduler_.pool()[i]; }

  // As worker::loop() does, but the task is handed to the caller. nullptr: the worker is to end.
  [[nodiscard]] record* find(std::size_t i) noexcept {
    record* t = at(i).next();
    return t != nullptr ? t : found(i, at(i).search_.find());
  }
  // The same from the middle of its loop, where it has found nothing and was not searching.
  [[nodiscard]] record* sleep_then_find(std::size_t i) noexcept {
    const bool searching = at(i).search_.sleep(false).first;
    return found(i, at(i).search_.find(searching));
  }
  // The same, counted as searching by the caller or whoever woke it.
  [[nodiscard]] record* search_on(std::size_t i) noexcept { return found(i, at(i).search_.find(true)); }
  // What this worker does instead of its loop; the end of the scheduler waits for it, as for the real one.
  template <class F>
  void run(std::size_t i, F f) {
    at(i).thread_ = base::thread(std::move(f));
  }
  // A task that somebody counted as spawned has ended.
  void count_finished(std::size_t i) noexcept { at(i).counters_.finished.add_published(); }
  // The rest of a worker's life after find() has said nullptr.
  void die(std::size_t i) noexcept { at(i).die(); }
  // The monitor, until stop().
  void monitor() noexcept {
    while (!scheduler_.stopping()) scheduler_.monitor_->nap(look());
  }
  void monitor_rests() noexcept { scheduler_.monitor_->rest(); }
  // For a while, and does not sleep through it.
  void monitor_is_woken() noexcept {
    const base::time_ns until = base::now() + monitor_limits::longest_idle_rest;
    scheduler_.monitor_->rest(until);
    model_assert(base::now() < until);
  }
  // Nobody has been stuck lately: its next nap may be as long as any.
  void calm_monitor() noexcept {
    (void)look();
    scheduler_.monitor_->policy_.nap_ = monitor_limits::longest_nap;
  }
  // One nap, which somebody ends before its time.
  void monitor_dozes() noexcept {
    calm_monitor();
    const base::time_ns began = base::now();
    scheduler_.monitor_->nap(monitor_limits::longest_nap);
    model_assert(base::now() == began);
  }
  // The nap after a look.
  [[nodiscard]] base::time_ns look() noexcept {
    (void)scheduler_.monitor_->look(base::now());
    return scheduler_.monitor_->policy_.nap_;
  }
  // A worker comes to another task.
  void advance(std::size_t i) noexcept { at(i).counters_.dispatched.add(); }
  // A worker sleeps, and has given what it kept. Then it goes to work: called by the worker itself.
  void put_to_sleep(std::size_t i) noexcept {
    at(i).keeps_caches_.store(false, base::relaxed);
    scheduler_.idle().enter_sleep(static_cast<int>(i), false);
  }
  void leave_idle(std::size_t i) noexcept { at(i).leave_idle(); }
  // A task that computes for ever.
  void keep_busy(std::size_t i, record* with) noexcept { at(i).current_.store(with, base::relaxed); }
  // As the worker itself or its tasks do.
  void put_in_slot(std::size_t i, record* t) noexcept { (void)at(i).queues().slot.put(t); }
  void put_in_ring(std::size_t i, record* t) noexcept {
    chain<record> none;
    at(i).queues().woken.push(t, none);
  }
  void put_in_fresh(std::size_t i, record* t) noexcept {
    chain<record> none;
    at(i).queues().fresh.push(t, none);
  }
  void stop() noexcept {
    scheduler_.stopping_.store(true, base::seq_cst);
    base::fence_seq_cst();  // as in monitor::stop()
    scheduler_.monitor_->hurry();
    for (worker* w : scheduler_.workers()) w->wake();
  }

 private:
  // The end of worker::loop().
  record* found(std::size_t i, record* t) noexcept {
    if (t == nullptr && at(i).is_leaving()) at(i).drain();
    return t;
  }
  static scheduler_options options(std::size_t workers, bool stealing, driver_factory make_driver) {
    // The scheduler's constructor starts no threads here.
    start_thread = [](thread_role, std::function<void()>) { return base::thread(); };
    scheduler_options o;
    o.workers = workers;
    o.queue_capacity = 4;
    o.stealing = stealing;
    o.elastic = false;
    o.make_driver = std::move(make_driver);
    return o;
  }

  scheduler scheduler_;
};
using step_by_step = test_seam;

}  // namespace weft::inline v1::sched

namespace model {

// A record that is ready to run and notices being taken twice, or before it is complete.
class ready_task : public weft::task::fiber {
 public:
  ready_task() : fiber(weft::task::ticket{0}) {
    word.reset_for_spawn(false);
    word.spawned();
    running.store(weft::task::run_state::runnable, base::relaxed);
  }
  // Claimed, and not in a queue yet, as accept_woken() wants it.
  record* woken(int n) {
    running.store(weft::task::run_state::none, base::relaxed);
    return made(n);
  }
  // By the one who is about to queue it.
  record* made(int n) {
    item_.made(n);
    return this;
  }
  static int take(record* r) { return static_cast<ready_task*>(r)->item_.take(); }
  [[nodiscard]] bool was_taken() const { return item_.taken == 1; }

 private:
  item item_;
};

}  // namespace model
