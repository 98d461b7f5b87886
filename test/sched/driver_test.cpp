// A driver (sched/driver.hpp) that workers poll and sleep in: events from outside reach the tasks that wait for them.
#include "sched/driver.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/lock.hpp"
#include "sched/scheduler.hpp"
#include "support/held_monitor.hpp"
#include "support/usual.hpp"
#include "wait/fiber_wait.hpp"

namespace {

using namespace support::usual;
namespace sched = weft::sched;
namespace task = weft::task;
namespace waits = weft::waits;

// A door at which outside threads knock. Each knock wakes one task that waits, or the next one that comes.
class door final : public sched::driver {
 public:
  door() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~door() override { ::close(fd_); }

  void knock() {
    {
      base::lock_guard guard(lock_);
      ++knocks_;
    }
    interrupt();  // the kernel's part
  }
  void wait(std::source_location where = std::source_location::current()) {
    waits::node n;
    knock_wait w(*this);
    if (waits::fiber_wait(w, n, {.where = where}) == waits::outcome::cancelled) waits::throw_cancelled();
  }

  [[nodiscard]] bool is_wanted() const noexcept override { return waiting_.load(base::relaxed) != 0; }
  void poll(base::time_ns deadline, std::size_t most, sched::chain<task::record>& woken) noexcept override {
    EXPECT_FALSE(is_polled_.exchange(true)) << "one thread at a time";
    ++polls_;
    sleep(deadline);
    {
      base::lock_guard guard(lock_);
      while (knocks_ != 0 && waiters_ != nullptr && woken.size() < most) {
        waits::node& n = *waiters_;
        waits::unlink(waiters_, n);
        waiting_.fetch_sub(1, base::relaxed);
        if (!waits::claim(n, task::wake_reason::data)) continue;
        --knocks_;
        woken.push_back(static_cast<task::record*>(n.who));
      }
    }
    is_polled_ = false;
  }
  void interrupt() noexcept override {
    const std::uint64_t one = 1;
    (void)!::write(fd_, &one, sizeof one);
  }

  [[nodiscard]] std::size_t polls() const { return polls_.load(); }
  [[nodiscard]] bool is_slept_in() const { return is_slept_in_.load(); }

 private:
  class knock_wait final : public waits::waitable {
   public:
    explicit knock_wait(door& d) noexcept : door_(d) {}
    bool try_complete() noexcept override { return false; }
    bool try_locked() noexcept override { return take(); }
    bool publish(waits::node& n) noexcept override {
      if (take()) return false;
      waits::link_last(door_.waiters_, n);
      door_.waiting_.fetch_add(1, base::relaxed);
      return true;
    }
    void unpublish(waits::node& n) noexcept override {
      if (!n.linked) return;
      waits::unlink(door_.waiters_, n);
      door_.waiting_.fetch_sub(1, base::relaxed);
    }
    [[nodiscard]] base::lock* own_lock() noexcept override { return &door_.lock_; }
    [[nodiscard]] waits::subject what() const noexcept override {
      static constexpr waits::wait_kind kind{"knock"};
      return {&kind, &door_};
    }

   private:
    [[nodiscard]] bool take() noexcept {
      if (door_.knocks_ == 0) return false;
      --door_.knocks_;
      return true;
    }
    door& door_;
  };

  void sleep(base::time_ns deadline) noexcept {
    const base::time_ns now = base::now();
    if (deadline > now) {
      is_slept_in_ = true;
      pollfd p{fd_, POLLIN, 0};
      const timespec left{static_cast<time_t>((deadline - now) / 1'000'000'000), (deadline - now) % 1'000'000'000};
      (void)::ppoll(&p, 1, deadline == base::never_ns ? nullptr : &left, nullptr);
      is_slept_in_ = false;
    }
    std::uint64_t count = 0;
    (void)!::read(fd_, &count, sizeof count);
  }

  const int fd_;
  base::lock lock_;
  std::size_t knocks_ = 0;  // under lock_
  waits::node* waiters_ = nullptr;  // under lock_
  base::atomic<std::size_t> waiting_{0};
  base::atomic<std::size_t> polls_{0};
  base::atomic<bool> is_polled_{false};
  base::atomic<bool> is_slept_in_{false};
};

// A runtime whose driver is a door.
class house {
 public:
  explicit house(std::size_t workers) : core_(options(workers)) {}
  template <class F>
  auto spawn(F f) {
    return weft::detail::spawn_in(&core_, nullptr, std::move(f));
  }
  door* operator->() const noexcept { return door_; }
  [[nodiscard]] sched::scheduler& core() noexcept { return core_; }
  [[nodiscard]] door& entrance() const noexcept { return *door_; }

 private:
  sched::scheduler_options options(std::size_t workers) {
    sched::scheduler_options o;
    o.workers = workers;
    o.elastic = false;
    o.make_driver = [this] {
      auto d = std::make_unique<door>();
      door_ = d.get();
      return d;
    };
    return o;
  }
  door* door_ = nullptr;
  sched::scheduler core_;
};

// Each knock comes when all have gone to sleep, or nearly so.
// req: W-4 BZ-12
TEST(Driver, an_event_wakes_its_task_while_all_workers_sleep) {
  support::watchdog guard(100s);
  support::at_worker_counts([](std::size_t workers) {
    house h(workers);
    base::atomic<std::size_t> heard{0};
    const std::size_t n = scaled(500);
    auto listener = h.spawn([&] {
      for (std::size_t i = 0; i < n; ++i) {
        h->wait();
        ++heard;
      }
    });
    for (std::size_t i = 0; i < n; ++i) {
      if (i % 2 == 0) until([&] { return h->is_slept_in(); });
      h->knock();
      until([&] { return heard.load() == i + 1; });
    }
    listener.join();
  });
}

// req: W-4
TEST(Driver, workers_that_are_never_idle_poll_it_too) {
  support::watchdog guard(100s);
  support::at_worker_counts([](std::size_t workers) {
    house h(workers);
    base::atomic<bool> over{false};
    std::vector<weft::join_handle<void>> busy;
    for (std::size_t i = 0; i < 2 * workers; ++i)
      busy.push_back(h.spawn([&] {
        while (!over.load()) weft::yield();
      }));
    auto listener = h.spawn([&] {
      for (int i = 0; i < 20; ++i) h->wait();
      over = true;
    });
    for (int i = 0; i < 20; ++i) h->knock();
    listener.join();
    for (auto& b : busy) b.join();
  });
}

// Somebody sleeps in the driver and is chosen for a task that holds its worker until the event has come. Then the others poll, or the
// monitor wakes one of them for it.
// req: CC-16
TEST(Driver, an_event_is_not_lost_behind_a_worker_that_left_the_driver_and_is_stuck) {
  support::watchdog guard(100s);
  house h(2);
  const std::size_t n = scaled(50);
  base::atomic<std::size_t> heard{0};
  auto listener = h.spawn([&] {
    for (std::size_t i = 0; i < n; ++i) {
      h->wait();
      ++heard;
    }
  });
  for (std::size_t i = 0; i < n; ++i) {
    until([&] { return h->is_slept_in(); });
    base::atomic<bool> is_stuck{false};
    auto stuck = h.spawn([&] {
      is_stuck = true;
      while (heard.load() == i) std::this_thread::sleep_for(100us);
    });
    until([&] { return is_stuck.load(); });
    h->knock();
    stuck.join();
  }
  listener.join();
}

// The monitor, which would notice it later, is held. Tasks from outside go to the workers in turn, so every second one goes
// to the worker that sleeps in the driver.
// req: CC-16
TEST(Driver, a_sleeper_takes_the_place_of_a_worker_whose_task_may_block) {
  support::watchdog guard(100s);
  house h(2);
  auto listener = h.spawn([&] { h->wait(); });
  {
    const support::held_monitor held(h.core());
    for (int i = 0; i < 20; ++i) {
      until([&] { return h.core().idle().sleeping() == 2 && h->is_slept_in(); });
      h.spawn([&] { weft::blocking([&] { support::hold_worker_until([&] { return h->is_slept_in(); }); }); }).join();
    }
  }
  h->knock();
  listener.join();
}

// req: W-4 BZ-12
TEST(Driver, a_worker_that_sleeps_in_it_is_woken_for_tasks_and_timers) {
  support::watchdog guard(100s);
  support::at_worker_counts([](std::size_t workers) {
    house h(workers);
    auto listener = h.spawn([&] { h->wait(); });
    for (std::size_t i = 0; i < scaled(300); ++i) {
      if (i % 2 == 0) until([&] { return h->is_slept_in(); });
      EXPECT_EQ(h.spawn([&] { return i; }).join(), i);
    }
    h.spawn([] { weft::sleep_for(2ms); }).join();
    h->knock();
    listener.join();
  });
}

// A server whose requests have time-outs would otherwise wake two workers for each of them. The monitor is held, because it may wake
// one for a poll that is overdue.
TEST(Driver, a_far_timer_does_not_make_the_next_worker_take_the_place_of_one_that_leaves) {
  support::watchdog guard(100s);
  house h(2);
  const support::held_monitor held(h.core());
  auto far = h.spawn([] { weft::sleep_for(1h); });
  constexpr int n = 20;
  base::atomic<int> waits{0}, heard{0};
  const auto listen = [&] {
    while (waits.fetch_add(1) < n) {
      h->wait();
      ++heard;
      for (int spins = 0; spins < 500; ++spins) {
        base::linger(100);
        EXPECT_FALSE(h->is_slept_in()) << "the second worker lies there, though a worker is awake";
      }
    }
  };
  auto one = h.spawn(listen);
  auto other = h.spawn(listen);  // waits while the first is awake
  // Whoever sleeps while this holds the other worker is the watcher and sleeps in the driver.
  h.spawn([&] { support::hold_worker_until([&] { return h->is_slept_in(); }); }).join();
  for (int i = 0; i < n; ++i) {
    // A worker that is still on its way to sleep would rightly take the place.
    until([&] { return h.core().idle().sleeping() == 2 && h->is_slept_in(); });
    h->knock();
    until([&] { return heard.load() == i + 1; });
  }
  one.join();
  other.join();
  far.cancel();
  EXPECT_THROW(far.join(), weft::task_cancelled);
}

TEST(Driver, nobody_polls_it_while_nobody_waits_for_it) {
  support::watchdog guard(60s);
  house h(2);
  for (int i = 0; i < 100; ++i) h.spawn([] { weft::sleep_for(100us); }).join();
  EXPECT_EQ(h->polls(), 0u);
}

// req: W-4
TEST(Driver, a_wait_for_an_event_can_be_cancelled_and_loses_no_knock) {
  support::watchdog guard(60s);
  support::at_worker_counts([](std::size_t workers) {
    house h(workers);
    base::atomic<std::size_t> heard{0};
    std::size_t cancelled = 0;
    const std::size_t n = scaled(300);
    for (std::size_t i = 0; i < n; ++i) {
      auto listener = h.spawn([&] {
        h->wait();
        ++heard;
      });
      std::thread knocks([&] { h->knock(); });
      listener.cancel();
      try {
        listener.join();
      } catch (const weft::task_cancelled&) {
        ++cancelled;
      }
      knocks.join();
    }
    EXPECT_EQ(heard.load() + cancelled, n);
    for (std::size_t i = 0; i < cancelled; ++i) h.spawn([&] { h->wait(); }).join();  // as many knocks are left
  });
}

TEST(Driver, one_that_cannot_be_made_refuses_the_runtime) {
  sched::scheduler_options o;
  o.make_driver = []() -> std::unique_ptr<sched::driver> { throw std::system_error(EMFILE, std::system_category()); };
  EXPECT_THROW(sched::scheduler{o}, std::system_error);
}

}  // namespace
