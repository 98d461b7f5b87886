#include "fairness.hpp"

#include <weft/weft.hpp>

#include <atomic>

namespace weft_bench {

using namespace peer;

Result accept_backlog(u64 acceptors) {
  constexpr u64 duration = 500'000'000;
  std::atomic<u64> spawned{0}, started{0}, waiting_at_end{0}, spawned_at_end{0}, longest{0};
  std::atomic<bool> over{false};
  const auto handle = [&](u64 since) {
    const u64 waited = now_ns() - since;
    for (u64 most = longest; waited > most && !longest.compare_exchange_weak(most, waited);) {}
    ++started;
  };
  weft::with_scope([&](weft::scope& all) {
    auto [out, in] = weft::make_channel<u64>();
    for (u64 i = 0; i < acceptors; ++i)
      all.spawn([&, from = in] {
        for ([[maybe_unused]] u64 v : from) {
          ++spawned;
          all.spawn([&handle, since = now_ns()] { handle(since); });
        }
      });
    const u64 end = now_ns() + duration;
    for (int i = 0; i < 2; ++i)
      all.spawn([&, to = out] {
        while (now_ns() < end && to.send(1)) {}
        if (over.exchange(true)) return;
        const u64 first = started;  // before the others are counted, so that it is not the smaller one
        spawned_at_end = spawned.load();
        waiting_at_end = spawned_at_end - first;
      });
  });
  check(started == spawned, "accept_backlog");
  return {double(longest) / 1e6,
          {{"backlog_percent", 100 * double(waiting_at_end) / double(spawned_at_end)}, {"spawned", double(spawned)}}};
}

}  // namespace weft_bench
