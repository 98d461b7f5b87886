// The workers of one runtime: slots that are filled one after the other and never emptied, while everybody reads them.
//
// Readers are wakers from any thread, thieves, the watch and the monitor. They take no lock. Only three parties change
// the set, one after the other: the scheduler's constructor, then the monitor (sched.M3), then the scheduler's end,
// which stops the monitor first.
//
// sched.P1. A worker's slot is filled once and stays filled. Readers see the first `created_` slots, each with a
//     complete worker. A worker that has died keeps its inbox and timers reachable, and its slot is used again.
//     test sched/worker_set, sched/elastic_*
// sched.P2. live() is the number of workers that are not dead. It is late by the time that a worker needs to come or
//     go. The idle set learns of every change of it.
//     test sched/worker_set
//
// The class is a template, like the queues, so that a test can fill it with workers that have no thread.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "sched/idle_set.hpp"

namespace weft::inline v1::sched {

template <class Worker>
class basic_worker_set {
 public:
  using maker = std::function<std::unique_ptr<Worker>(int id)>;

  // There is room for `slots` workers. The caller makes and starts the first `live` of them, and they count as alive
  // already.
  basic_worker_set(std::size_t live, std::size_t slots, idle_set& idle, maker make)
      : make_(std::move(make)),
        owned_(slots),
        pointers_(slots),
        idle_(idle),
        live_(live) {}
  basic_worker_set(const basic_worker_set&) = delete;
  basic_worker_set& operator=(const basic_worker_set&) = delete;

  // --- anybody ----------------------------------------------------------------------------------------------------
  // How many slots are filled. Dead workers are included, because their inboxes and timers are still there. acquire
  // pairs with the release in make().
  [[nodiscard]] std::size_t created() const noexcept { return created_.load(base::acquire); }
  [[nodiscard]] std::span<Worker* const> all() const noexcept { return {pointers_.data(), created()}; }
  // The caller has the number from created(), from the idle set or from a worker, so the slot is filled.
  [[nodiscard]] Worker& operator[](std::size_t i) const noexcept { return *pointers_[i]; }
  [[nodiscard]] std::size_t live() const noexcept { return live_.load(base::relaxed); }
  // Whether there is only one worker. It will find whatever it queues itself, or the monitor will.
  [[nodiscard]] bool is_alone() const noexcept { return live() == 1; }
  // Whether there is room for another worker.
  [[nodiscard]] bool has_room() const noexcept { return created() < owned_.size() || a_dead_one() != nullptr; }
  // Asks a worker to leave. At least one must stay.
  void retire(std::size_t i) noexcept {
    pointers_[i]->request_drain();
    pointers_[i]->wake();
  }
  void wake_all() noexcept {
    for (Worker* w : all()) w->wake();
  }

  // --- a worker's own thread --------------------------------------------------------------------------------------
  // Called by a worker that is about to be dead.
  void count_out() noexcept { count_live(-1); }

  // --- whoever may change the set ---------------------------------------------------------------------------------
  // Fills the next slot. The worker is not started. Throws what its constructor throws.
  Worker& make() {
    const std::size_t n = created_.load(base::relaxed);
    owned_[n] = make_(static_cast<int>(n));
    pointers_[n] = owned_[n].get();
    // Publishes the worker; pairs with the acquire in created().
    created_.store(n + 1, base::release);
    return *pointers_[n];
  }
  // Starts one more worker, in the slot of a dead one if there is one. Returns false if there was no memory or no
  // thread. The slot may be filled then, and the worker in it is dead (Worker::start()).
  [[nodiscard]] bool add() noexcept {
    bool counted = false;
    try {
      Worker* added = a_dead_one();
      if (added == nullptr) added = &make();
      count_live(1);
      counted = true;
      added->start();
      return true;
    } catch (const std::exception&) {
      if (counted) count_live(-1);
      return false;
    }
  }
  // Waits for the threads of dead workers, so that the system can forget them.
  void join_dead() noexcept {
    for (Worker* w : all())
      if (w->is_dead()) w->join();
  }
  void join_all() noexcept {
    for (Worker* w : all()) w->join();
  }
  void clear() noexcept { owned_.clear(); }
  // For the child of a fork. The threads exist only in the parent, so the workers cannot be destroyed.
  void leak() noexcept {
    for (auto& w : owned_) static_cast<void>(w.release());
  }

 private:
  [[nodiscard]] Worker* a_dead_one() const noexcept {
    for (Worker* w : all())
      if (w->is_dead()) return w;
    return nullptr;
  }
  void count_live(int change) noexcept {
    const std::size_t before = live_.fetch_add(static_cast<std::size_t>(change), base::relaxed);
    idle_.set_workers(before + static_cast<std::size_t>(change));
  }

  const maker make_;
  std::vector<std::unique_ptr<Worker>> owned_;
  std::vector<Worker*> pointers_;
  idle_set& idle_;
  // These are written rarely and read at every wake. Nothing that is written often may share their line.
  alignas(base::cache_line) base::atomic<std::size_t> created_{0};
  base::atomic<std::size_t> live_;
};

class worker;
using worker_set = basic_worker_set<worker>;

}  // namespace weft::inline v1::sched
