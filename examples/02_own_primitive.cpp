// How to build your own primitive on park_if and unpark: a semaphore whose waiters may be cancelled.
#include <weft/weft.hpp>

#include <atomic>
#include <cstdio>
#include <deque>
#include <mutex>
#include <vector>

namespace {

class semaphore {
 public:
  explicit semaphore(int permits) : free_(permits) {}

  void acquire() {
    weft::this_task::check();  // always a cancellation point, not only when it has to wait
    waiter me{weft::this_task::ref()};
    {
      std::lock_guard guard(mutex_);  // held for a moment, and never across a suspension
      if (free_ > 0) {
        --free_;
        return;
      }
      queue_.push_back(&me);
    }
    try {
      // An old unpark may wake us, so ask again. An unpark between the question and the park is not lost.
      while (me.waits) weft::park_if(me.waits, true);
    } catch (...) {
      // Cancelled. Nobody may keep a pointer into this frame, and a permit must not be lost with this task.
      std::lock_guard guard(mutex_);
      if (me.waits)
        std::erase(queue_, &me);
      else
        hand_on();  // release() was faster and gave the permit to us; pass it on
      throw;
    }
  }
  void release() {
    std::lock_guard guard(mutex_);
    hand_on();
  }
  [[nodiscard]] int free() {
    std::lock_guard guard(mutex_);
    return free_;
  }
  [[nodiscard]] std::size_t waiting() {
    std::lock_guard guard(mutex_);
    return queue_.size();
  }

 private:
  struct waiter {
    weft::task_ref task;
    std::atomic<bool> waits{true};
  };
  void hand_on() {
    if (queue_.empty()) {
      ++free_;
      return;
    }
    waiter* next = queue_.front();
    queue_.pop_front();
    const weft::task_ref task = next->task;  // first, because after the store below its frame may be gone
    next->waits = false;
    weft::unpark(task);
  }

  std::mutex mutex_;
  int free_;
  std::deque<waiter*> queue_;
};

}  // namespace

int main() {
  return weft::run([] {
    semaphore s(1);
    std::atomic<int> served{0};
    s.acquire();
    std::vector<weft::join_handle<void>> visitors;
    for (int i = 0; i < 100; ++i)
      visitors.push_back(weft::spawn([&] {
        s.acquire();
        ++served;
        s.release();
      }));
    while (s.waiting() < visitors.size()) weft::yield();
    for (std::size_t i = 0; i < 30; ++i) visitors[i].cancel();  // they leave the queue
    s.release();
    for (std::size_t i = 30; i < 60; ++i) visitors[i].cancel();  // some may hold the permit by now, and pass it on
    int cancelled = 0;
    for (auto& v : visitors) try {
        v.join();
      } catch (const weft::task_cancelled&) {
        ++cancelled;
      }
    std::printf("%d served, %d cancelled, %d permit left\n", served.load(), cancelled, s.free());
    return served + cancelled == 100 && s.free() == 1 ? 0 : 1;
  });
}
