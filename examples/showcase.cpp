// What Weft does, with figures: a hundred thousand fibers, work stealing, sleeping, joining, cancelling.
#include <weft/weft.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

namespace {

double ms_since(clock_type::time_point start) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
}

std::uint64_t fib(unsigned n) {
  if (n < 2) return n;
  auto left = weft::spawn([n] { return fib(n - 1); });  // an ordinary recursive function; each call is a task
  const std::uint64_t right = fib(n - 2);
  return left.join() + right;
}

void many_sleepers() {
  constexpr int sleepers = 100'000;
  const auto start = clock_type::now();
  std::vector<weft::join_handle<void>> handles;
  handles.reserve(sleepers);
  for (int i = 0; i < sleepers; ++i) handles.push_back(weft::spawn([] { weft::sleep_for(100ms); }));
  for (auto& h : handles) h.join();
  std::printf("  %d fibers, each sleeping 100 ms:   %.0f ms in all\n", sleepers, ms_since(start));
}

void fork_join() {
  const auto start = clock_type::now();
  const std::uint64_t result = fib(25);
  const double ms = ms_since(start);
  std::printf("  fib(25) = %llu, a task per call:      %.0f ms for 121392 tasks, %.0f ns each\n",
              static_cast<unsigned long long>(result), ms, ms * 1e6 / 121392);
}

void stealing() {
  // One task spawns them all. Idle workers come and take half of what they find.
  std::vector<weft::join_handle<std::thread::id>> handles;
  for (int i = 0; i < 64; ++i)
    handles.push_back(weft::spawn([] {
      const auto until = clock_type::now() + 2ms;
      while (clock_type::now() < until) {}
      return std::this_thread::get_id();
    }));
  const auto here = std::this_thread::get_id();
  int elsewhere = 0;
  for (auto& h : handles) elsewhere += h.join() != here ? 1 : 0;
  std::printf("  64 busy tasks spawned by one worker:  %d ran on another thread than this one\n", elsewhere);
}

void cancelling() {
  std::atomic<int> unwound{0};
  struct on_exit {
    std::atomic<int>& count;
    ~on_exit() { ++count; }
  };
  std::vector<weft::join_handle<void>> handles;
  for (int i = 0; i < 1000; ++i)
    handles.push_back(weft::spawn([&] {
      on_exit guard{unwound};
      weft::sleep_for(1h);
    }));
  weft::yield();
  const auto start = clock_type::now();
  int cancelled = 0;
  for (auto& h : handles) h.cancel();
  for (auto& h : handles) {
    try {
      h.join();
    } catch (const weft::task_cancelled&) {
      ++cancelled;
    }
  }
  // A task that had not started yet when it was cancelled still runs to its first cancellation point.
  std::printf("  1000 one-hour sleeps cancelled:       %.1f ms, %d cancelled, %d destructors run\n", ms_since(start),
              cancelled, unwound.load());
}

}  // namespace

int main() {
  weft::runtime rt;
  std::printf("Weft on %zu workers\n", rt.workers());
  rt.run([] {
    weft::this_task::set_name("showcase");
    many_sleepers();
    fork_join();
    stealing();
    cancelling();
  });
  const weft::runtime_statistics s = rt.statistics();
  std::printf("  %llu tasks spawned, %llu dispatches, %llu steals moved %llu tasks, workers slept %llu times\n",
              static_cast<unsigned long long>(s.spawned), static_cast<unsigned long long>(s.dispatched),
              static_cast<unsigned long long>(s.steals), static_cast<unsigned long long>(s.stolen_tasks),
              static_cast<unsigned long long>(s.sleeps));
}
