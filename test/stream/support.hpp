// What the tests of streams share.
#pragma once

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include "support/usual.hpp"

namespace stream_test {

// Runs body as a task, at each number of workers. When it returns, every task it started must end by itself: the runtime is
// not told to shut down before.
template <class Body>
void in_runtimes(Body body) {
  support::at_worker_counts([&](std::size_t workers) {
    support::watchdog guard(std::chrono::seconds(100), "a stream");
    support::watched_runtime rt(workers);
    rt->run(body);
    support::until([&] {
      const auto s = rt->statistics();
      return s.spawned == s.finished;
    });
  });
}

template <class T>
std::vector<T> all_of(weft::reader<T> in) {
  std::vector<T> all;
  while (std::optional<T> v = in.recv()) all.push_back(std::move(*v));
  return all;
}

// An element that knows how many of its kind live.
class counted {
 public:
  explicit counted(int v = 0) noexcept : value(v) { ++alive; }
  counted(const counted& other) noexcept : value(other.value) { ++alive; }
  counted(counted&& other) noexcept : value(other.value) { ++alive; }
  counted& operator=(const counted&) = default;
  ~counted() { --alive; }
  int value;
  static inline weft::base::atomic<int> alive{0};
};

using support::failure;

}  // namespace stream_test
