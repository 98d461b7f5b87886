// What the tests of the sync layer share.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "support/usual.hpp"
#include "wait/fiber_wait.hpp"

namespace sync_test {

using namespace support::usual;
using clock = std::chrono::steady_clock;
using handles = std::vector<weft::join_handle<void>>;

inline void join(handles& all) {
  for (auto& h : all) h.join();
}

// A task that says which it is, so that others can wait until it is parked.
class named_task {
 public:
  template <class F>
  named_task(weft::runtime& rt, F f)
      : handle_(rt.spawn([this, f = std::move(f)]() mutable {
          self_.store(weft::waits::current_task(), base::release);
          f();
        })) {}
  named_task(const named_task&) = delete;
  named_task& operator=(const named_task&) = delete;

  void until_parked() const {
    until([this] { return is_parked(self_.load(base::acquire)); });
  }
  void cancel() { handle_.cancel(); }
  void join() { handle_.join(); }
  // True: it ended by cancellation.
  [[nodiscard]] bool join_cancelled() {
    try {
      handle_.join();
      return false;
    } catch (const weft::task_cancelled&) {
      return true;
    }
  }
  [[nodiscard]] const weft::task::record& record() const { return *self_.load(base::acquire); }

 private:
  base::atomic<weft::task::record*> self_{nullptr};
  weft::join_handle<void> handle_;
};

// As often as asked for in the environment, or else so often that it takes a few seconds at most.
[[nodiscard]] inline std::size_t rounds(std::size_t usual) {
  const char* asked = std::getenv("WEFT_TEST_ROUNDS");
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : scaled(usual);
}

// In a task, and on a thread outside.
template <class F>
void in_task_and_thread(F f) {
  f();
  weft::run({.workers = 2}, f);
}

// A caller that has to wait and is served then: in a task at each worker count, and on an outside thread. begin() is
// called first, by the one that will call serve().
template <class Begin, class Wait, class Serve>
void served_after_waiting(Begin begin, Wait wait, Serve serve) {
  support::watchdog guard(60s);
  at_worker_counts([&](std::size_t workers) {
    watched_runtime rt(workers);
    begin();
    named_task waiter(*rt, wait);
    waiter.until_parked();
    serve();
    waiter.join();
  });
  begin();
  support::latch comes;
  std::thread outside([&] {
    comes.count_down();
    wait();
  });
  comes.wait();
  until([] { return support::others_sleep(); });
  serve();
  outside.join();
}

}  // namespace sync_test
