// Two figures of the scheduler alone, sample by sample (KC-12): how long a task waits for a thief that is already searching, and
// what a trivial task costs. Weft only; a test runs them small.
#pragma once

#include <weft/weft.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernel {

inline std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// From just before the spawn to the first line of the task, on another worker. The spawner never suspends, so nobody but a
// thief can run it; the pause before each spawn is longer than a thief needs to look for work again, and shorter than it
// looks before it sleeps. Needs two workers.
inline std::vector<double> steal_latency(std::size_t samples) {
  constexpr std::int64_t pause_ns = 5'000;
  const std::size_t warm_up = samples / 10 + 10;
  std::vector<double> taken;
  taken.reserve(samples);
  for (std::size_t i = 0; i < warm_up + samples; ++i) {
    for (const std::int64_t until = now_ns() + pause_ns; now_ns() < until;) {}
    std::atomic<std::int64_t> started{0};
    const std::int64_t spawned = now_ns();
    weft::join_handle<void> task = weft::spawn([&] { started.store(now_ns(), std::memory_order_release); });
    while (started.load(std::memory_order_acquire) == 0) {}
    if (i >= warm_up) taken.push_back(static_cast<double>(started.load() - spawned));
    task.join();
  }
  return taken;
}

// ns per task that does nothing: spawned, run, joined; batches of 1000, one sample per batch.
inline std::vector<double> trivial_tasks(std::size_t batches) {
  constexpr std::size_t batch = 1000;
  const std::size_t warm_up = batches / 10 + 10;
  std::vector<weft::join_handle<void>> handles(batch);
  std::vector<double> taken;
  taken.reserve(batches);
  for (std::size_t b = 0; b < warm_up + batches; ++b) {
    const std::int64_t start = now_ns();
    for (auto& h : handles) h = weft::spawn([] {});
    for (auto& h : handles) h.join();
    if (b >= warm_up) taken.push_back(static_cast<double>(now_ns() - start) / batch);
  }
  return taken;
}

struct figures {
  double median, p95, p99;
};

inline figures summary(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double q) {
    return samples[static_cast<std::size_t>(q * static_cast<double>(samples.size() - 1))];
  };
  return {at(0.5), at(0.95), at(0.99)};
}

}  // namespace kernel
