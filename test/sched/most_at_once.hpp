// How many tasks were at a place at once.
#pragma once

#include "base/atomic.hpp"

namespace sched_test {

// The most that were between enter() and leave() at once.
class most_at_once {
 public:
  void enter() {
    const int n = inside_.fetch_add(1) + 1;
    int seen = most_.load();
    while (n > seen && !most_.compare_exchange_weak(seen, n)) {}
  }
  void leave() { inside_.fetch_sub(1); }
  [[nodiscard]] int get() const { return most_.load(); }

 private:
  weft::base::atomic<int> inside_{0};
  weft::base::atomic<int> most_{0};
};

}  // namespace sched_test
