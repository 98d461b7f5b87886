#include "io/direction.hpp"

#include <algorithm>

#include "wait/wake.hpp"
#include <weft/detail/io_core.hpp>

namespace weft::inline v1::io {

waits::node* direction::claim_first(std::int64_t& left) noexcept {
  while (waits::node* n = waiters_.first()) {
    unlink(*n);
    ++left;
    if (base::check<"direction.claim">(waits::claim(*n, task::wake_reason::data))) return n;
  }
  return nullptr;
}

waits::node* direction::tell(std::uint32_t generation, bool for_ever, std::int64_t& left) noexcept {
  base::lock_guard guard(lock_);
  if (base::check<"direction.generation">(generation != generation_)) return nullptr;
  view seen = state_.load(base::relaxed);
  view next;
  do {
    next = (seen + one_edge) | ready | (for_ever ? ended : 0);
    // release pairs with the acquire in look(). A loop, because clear() does not take the lock.
  } while (!state_.compare_exchange_weak(seen, next, base::order<"direction.tell">(base::release), base::relaxed));
  return claim_first(left);
}

void direction::pass_on_slowly() noexcept {
  std::int64_t left = 0;
  waits::node* next = nullptr;
  {
    base::lock_guard guard(lock_);
    if (base::check<"direction.pass_on">(is_worth_trying(state_.load(base::relaxed)))) next = claim_first(left);
    if (left != 0) waiting_->fetch_sub(left, base::relaxed);
  }
  if (next != nullptr) waits::resume(*next->who);
}

void direction::open() noexcept {
  base::lock_guard guard(lock_);
  state_.store(ready, base::relaxed);
}

// An RMW, because clear() does not take the lock.
void direction::close(locks::claimed_waiters& all) noexcept {
  renew();
  view seen = state_.load(base::relaxed);
  while (!state_.compare_exchange_weak(seen, (seen + one_edge) | ready | closed, base::relaxed, base::relaxed)) {}
  std::int64_t left = 0;
  while (waits::node* n = waiters_.first()) {
    unlink(*n);
    ++left;
    if (waits::claim(*n, task::wake_reason::data)) all.add(*n);
  }
  if (left != 0) waiting_->fetch_sub(left, base::relaxed);
}

base::time_ns direction::expire(base::time_ns now, locks::claimed_waiters& all) noexcept {
  base::time_ns next = base::never_ns;
  std::int64_t left = 0;
  for (waits::node *n = waiters_.first(), *following; n != nullptr; n = following) {
    following = n->next;
    if (n->mark != limited) continue;
    if (const base::time_ns deadline = static_cast<limited_node*>(n)->deadline; deadline > now) {
      next = std::min(next, deadline);
      continue;
    }
    unlink(*n);
    ++left;
    if (!waits::claim(*n, task::wake_reason::data)) continue;
    n->mark = late;
    all.add(*n);
  }
  if (left != 0) waiting_->fetch_sub(left, base::relaxed);
  return next;
}

}  // namespace weft::inline v1::io
