#include <algorithm>

#include "base/check.hpp"
#include "context/guard.hpp"
#include "context/stack.hpp"

namespace weft::inline v1::context {

bool stack_cache::refill() noexcept {
  for (stack* s = pool_.acquire_batch(pool_.is_limited() ? 1 : batch); s != nullptr; s = s->next) held_[count_++] = s;
  std::reverse(held_, held_ + count_);  // the chain begins with the warmest; take() takes the last
  return count_ != 0;
}

void stack_cache::spill() noexcept {
  for (std::size_t i = 0; i + 1 < batch; ++i) held_[i]->next = held_[i + 1];
  held_[batch - 1]->next = nullptr;
  pool_.release_batch(held_[0]);
  std::copy(held_ + batch, held_ + count_, held_);
  count_ -= batch;
}

void stack_cache::drain() noexcept {
  stack* chain = nullptr;
  while (count_ != 0) {
    stack* s = held_[--count_];
    s->next = chain;
    chain = s;
  }
  pool_.release_batch(chain);
}

void stack_cache::check(const stack& s) noexcept {
  base::invariant(!s.free, "a stack is put into a cache that is not handed out");
  check_canary(s);
}

}  // namespace weft::inline v1::context
