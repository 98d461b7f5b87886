// What travels through the queues in model tests: an item that notices being taken twice, or before it is complete.
#pragma once

#include "base/atomic.hpp"
#include "explore/explore.hpp"

namespace model {

namespace base = weft::base;

struct item {
  base::plain<item*> next{nullptr};
  base::plain<int> number{-1};  // written by the producer just before it pushes: seen complete or a race
  base::plain<int> taken{0};    // twice by two threads is a race, by one thread a wrong count

  item* made(int n) {
    number = n;
    return this;
  }
  int take() {
    taken = taken + 1;
    model_assert(taken == 1);
    model_assert(number >= 0);
    return number;
  }
};

template <int N>
struct items {
  item all[N];
  item* operator[](int i) { return &all[i]; }
  item* make(int i) { return all[i].made(i); }
  int taken() {
    int n = 0;
    for (item& i : all) n += i.taken;
    return n;
  }
};

}  // namespace model
