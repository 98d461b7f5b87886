#include "structure.hpp"

#include <weft/weft.hpp>

#include <algorithm>
#include <atomic>
#include <vector>

namespace weft_bench {

using namespace peer;

u64 scope_spawn(u64 n) {
  constexpr u64 batch = 1000;
  std::vector<u64> got(batch);
  for (u64 b = 0; b < n / batch; ++b) {
    weft::with_scope([&](weft::scope& s) {
      for (u64 i = 0; i < batch; ++i) s.spawn([&got, i] { got[i] = i; });
    });
    u64 sum = 0;
    for (u64& g : got) sum += std::exchange(g, 0);
    check(sum == sum_to(batch), "scope_spawn");
  }
  return n;
}

// From the call of cancel() until all have ended.
Result cancel_tree(u64 n) {
  auto [out, in] = weft::make_channel<u64>();
  const auto pass = [&] {
    std::atomic<u64> started{0}, unwound{0};
    u64 start = 0;
    weft::with_scope([&](weft::scope& s) {
      for (u64 i = 0; i < n; ++i)
        s.spawn([&started, &unwound, &from = in] {
          struct count_end {
            std::atomic<u64>& count;
            ~count_end() { ++count; }
          } counted{unwound};
          ++started;
          (void)from.recv();
        });
      while (started < n) weft::yield();
      start = now_ns();
      s.cancel();
    });
    const u64 taken = now_ns() - start;
    check(unwound == n, "cancel_tree");
    return double(taken) / double(n);
  };
  const double cold = pass();
  return {pass(), {{"cold", cold}}};
}

// What it costs a suspension point that it may be cancelled: a yield with nobody else to run, bare and under a shield.
Result cancel_check(u64 n) {
  const auto yields = [n] {
    const u64 start = now_ns();
    for (u64 i = 0; i < n; ++i) weft::yield();
    return double(now_ns() - start) / double(n);
  };
  std::vector<double> differences;
  double armed = 0, shielded = 0;
  for (int round = 0; round < 11; ++round) {
    armed = yields();
    shielded = weft::this_task::shielded(yields);
    differences.push_back(armed - shielded);
  }
  std::nth_element(differences.begin(), differences.begin() + 5, differences.end());
  return {differences[5], {{"armed", armed}, {"shielded", shielded}}};
}

}  // namespace weft_bench
