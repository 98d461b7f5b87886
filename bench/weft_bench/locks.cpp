#include "locks.hpp"

#include <weft/weft.hpp>

#include <mutex>
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

}  // namespace weft_bench
