#include "blocking.hpp"

#include <unistd.h>

#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <vector>

namespace weft_bench {

using namespace peer;

Result hog_latency(int workers, u64 n) {
  std::atomic<bool> over{false};
  std::atomic<int> started{0};
  std::vector<weft::join_handle<void>> hogs;
  for (int i = 0; i < workers; ++i)
    hogs.push_back(weft::spawn([&] {
      ++started;
      while (!over.load(std::memory_order_relaxed)) {}
    }));
  while (started < workers) weft::sleep_for(std::chrono::milliseconds(1));
  std::vector<double> ns;
  for (u64 i = 0; i < n; ++i) {
    const u64 due = now_ns() + 1'000'000;
    weft::sleep_for(std::chrono::milliseconds(1));
    ns.push_back(double(now_ns() - due));
  }
  over = true;
  for (auto& h : hogs) h.join();
  return percentiles_us(std::move(ns));
}

u64 dispatch_hop(u64 n) {
  const weft::dispatcher there = weft::dispatcher::custom(4);
  u64 sum = 0;
  for (u64 i = 0; i < n; ++i) sum += weft::with(there, [i] { return i; });
  check(sum == sum_to(n), "dispatch_hop");
  return n;
}

u64 blocking_call(u64 n) {
  int ends[2];
  check(::pipe(ends) == 0, "pipe");
  u64 sum = 0;
  for (u64 i = 0; i < n; ++i)
    sum += weft::blocking([&] {
      char byte = 1;
      check(::write(ends[1], &byte, 1) == 1 && ::read(ends[0], &byte, 1) == 1, "blocking_call");
      return u64(byte);
    });
  ::close(ends[0]);
  ::close(ends[1]);
  check(sum == n, "blocking_call");
  return n;
}

}  // namespace weft_bench
