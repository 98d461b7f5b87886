// A stand-in for a task in tests of the queues.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/atomic.hpp"
#include "sched/chain.hpp"

namespace queue_test {

struct item {
  weft::base::plain<item*> next{nullptr};
  std::size_t number = 0;
  weft::base::atomic<int> taken{0};
};

using chain = weft::sched::chain<item>;

// Numbered items that count how often each was taken.
class items {
 public:
  explicit items(std::size_t count) : count_(count), all_(std::make_unique<item[]>(count)) {
    for (std::size_t i = 0; i < count; ++i) all_[i].number = i;
  }
  item* operator[](std::size_t i) { return &all_[i]; }
  [[nodiscard]] std::size_t size() const { return count_; }
  void expect_each_taken_once() const {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count_; ++i)
      if (all_[i].taken.load() != 1) ++wrong;
    EXPECT_EQ(wrong, 0u) << "of " << count_ << " were lost or taken twice";
  }

 private:
  const std::size_t count_;
  const std::unique_ptr<item[]> all_;
};

inline void take(item* i) { i->taken.fetch_add(1, weft::base::relaxed); }

// Empties a chain and returns the numbers in order.
inline std::vector<std::size_t> numbers(chain& c) {
  std::vector<std::size_t> all;
  while (item* i = c.pop_front()) all.push_back(i->number);
  return all;
}

inline std::vector<std::size_t> count_up(std::size_t from, std::size_t to) {
  std::vector<std::size_t> all;
  for (; from < to; ++from) all.push_back(from);
  return all;
}

}  // namespace queue_test
