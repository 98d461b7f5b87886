// Building your own primitive on park_if and unpark: a gate that many tasks wait at until somebody opens it.
#include <weft/weft.hpp>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <vector>

namespace {

class gate {
 public:
  void pass() {
    {
      std::lock_guard guard(mutex_);  // held for a moment, never across a suspension
      waiting_.push_back(weft::this_task::ref());
    }
    // A permit may be an old one, so ask again. An unpark that comes between the question and the park is not lost.
    while (!open_) weft::park_if(open_, false);
  }
  void open() {
    open_ = true;
    std::lock_guard guard(mutex_);
    for (const auto& task : waiting_) weft::unpark(task);
  }

 private:
  std::atomic<bool> open_{false};
  std::mutex mutex_;
  std::vector<weft::task_ref> waiting_;
};

}  // namespace

int main() {
  return weft::run([] {
    gate g;
    std::atomic<int> passed{0};
    std::vector<weft::join_handle<void>> visitors;
    for (int i = 0; i < 1000; ++i)
      visitors.push_back(weft::spawn([&] {
        g.pass();
        ++passed;
      }));
    weft::yield();
    g.open();
    for (auto& v : visitors) v.join();
    std::printf("%d passed the gate\n", passed.load());
  });
}
