#include "locks.hpp"

#include <weft/weft.hpp>

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace weft_bench {

using namespace peer;

u64 mutex(u64 n) {
  constexpr u64 tasks = 64;
  weft::mutex m;
  u64 count = 0;
  std::vector<weft::join_handle<void>> handles;
  for (u64 t = 0; t < tasks; ++t)
    handles.push_back(weft::spawn([&, n] {
      for (u64 i = 0; i < n / tasks; ++i) {
        std::lock_guard guard(m);
        ++count;
      }
    }));
  for (auto& h : handles) h.join();
  check(count == n / tasks * tasks, "mutex");
  return count;
}

u64 semaphore(u64 n) {
  constexpr u64 tasks = 64, permits = 8;
  weft::semaphore s(permits);
  std::atomic<u64> count{0};
  std::vector<weft::join_handle<void>> handles;
  for (u64 t = 0; t < tasks; ++t)
    handles.push_back(weft::spawn([&, n] {
      for (u64 i = 0; i < n / tasks; ++i) {
        s.acquire();
        count.fetch_add(1, std::memory_order_relaxed);
        s.release();
      }
    }));
  for (auto& h : handles) h.join();
  check(count == n / tasks * tasks && s.available() == permits, "semaphore");
  return count;
}

u64 rwlock(u64 n) {
  constexpr u64 tasks = 5;  // the first one writes
  weft::shared_mutex m;
  u64 value = 0;
  std::vector<weft::join_handle<void>> handles;
  for (u64 t = 0; t < tasks; ++t)
    handles.push_back(weft::spawn([&, t, n] {
      u64 last = 0;
      for (u64 i = 0; i < n / tasks; ++i)
        if (t == 0) {
          std::lock_guard guard(m);
          ++value;
        } else {
          std::shared_lock guard(m);
          check(value >= last, "rwlock");
          last = value;
        }
    }));
  for (auto& h : handles) h.join();
  check(value == n / tasks, "rwlock");
  return n / tasks * tasks;
}

}  // namespace weft_bench
