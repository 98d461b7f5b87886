// As small as a waitable can be, for tests that only need something to wait for; over the abstract scheduler and the whole runtime.
#pragma once

#include "explore/explore.hpp"
#include "wait/fiber_wait.hpp"

namespace model {

namespace base = weft::base;
namespace task = weft::task;
namespace waits = weft::waits;

// Something that happens once, and whoever waits for it.
class event final : public waits::waitable {
 public:
  bool try_complete() noexcept override { return set_.load(base::acquire); }  // pairs with the release in set()
  bool publish(waits::node& n) noexcept override {
    if (set_.load(base::relaxed)) return false;  // under the lock
    waits::link_last(list_, n);
    return true;
  }
  void unpublish(waits::node& n) noexcept override { waits::unlink(list_, n); }
  base::lock* own_lock() noexcept override { return &lock_; }
  waits::subject what() const noexcept override {
    static constexpr waits::wait_kind kind{"event"};
    return {&kind, this};
  }

  // How many this call woke.
  int set() noexcept {
    waits::node* woken = nullptr;
    int n = 0;
    lock_.acquire();
    set_.store(true, base::release);
    while (waits::node* first = list_) {
      waits::unlink(list_, *first);
      if (!waits::claim(*first, task::wake_reason::data)) continue;
      first->next = woken;
      woken = first;
      ++n;
    }
    lock_.release();
    while (woken != nullptr) {
      waits::node* next = woken->next;  // the node is its owner's as soon as it runs
      waits::resume(*woken->who);
      woken = next;
    }
    return n;
  }
  waits::outcome wait_for(bool interruptible = true) {
    waits::node n;
    const waits::outcome o = waits::fiber_wait(*this, n, {.interruptible = interruptible, .where = {}});
    model_assert(!n.linked);
    return o;
  }
  bool nobody_waits() const { return list_ == nullptr; }

 private:
  base::lock lock_;
  waits::node* list_ = nullptr;
  base::atomic<bool> set_{false};
};

}  // namespace model
