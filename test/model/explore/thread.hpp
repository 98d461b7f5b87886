// The exploring twin of src/base/thread.hpp: a joinable virtual thread, and values by virtual thread.
#pragma once

#include <utility>

#include "explore/atomic.hpp"
#include "explore/explore.hpp"

namespace explore {

int running_thread() noexcept;
std::uint64_t this_execution() noexcept;

}  // namespace explore

namespace weft::inline v1::base {

class thread {
 public:
  thread() = default;
  template <class F>
  explicit thread(F body) : ended_(new atomic<std::uint32_t>(0)) {
    explore::thread([body = std::move(body), ended = ended_] {
      body();
      ended->store(1, release);  // pairs with the acquire in join()
      futex_wake(ended, 1);
    });
  }
  thread(thread&& other) noexcept : ended_(std::exchange(other.ended_, nullptr)) {}
  thread& operator=(thread&& other) noexcept {
    std::swap(ended_, other.ended_);
    return *this;
  }

  bool joinable() const noexcept { return ended_ != nullptr; }
  void join() {
    while (ended_->load(acquire) == 0) futex_wait(*ended_, 0);
    delete std::exchange(ended_, nullptr);
  }

 private:
  atomic<std::uint32_t>* ended_ = nullptr;
};

inline void yield_thread(explore::where w = explore::where::current()) noexcept { cpu_relax(w); }

// An execution that was given up leaves its values behind; they do not count in the next.
template <class T>
class per_thread {
 public:
  T get() const noexcept {
    const entry& e = entries_[explore::running_thread()];
    return e.execution == explore::this_execution() ? e.value : T{};
  }
  void set(T value) noexcept { entries_[explore::running_thread()] = {value, explore::this_execution()}; }

 private:
  struct entry {
    T value;
    std::uint64_t execution;
  };
  entry entries_[8] = {};  // max_threads
};

}  // namespace weft::inline v1::base
