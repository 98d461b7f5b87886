#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/check.hpp"
#include "context/guard.hpp"
#include "context/shelf.hpp"
#include "context/size_class.hpp"
#include "context/stack.hpp"
#include "context/system_memory.hpp"

namespace weft::inline v1::context {
namespace {

std::size_t check_guard(std::size_t size) {
  if (size == 0 || size > largest_stack)
    throw std::invalid_argument("weft: a stack guard of " + std::to_string(size) +
                                " bytes; give at least one page and at most 1 GiB");
  return round_to_pages(size);
}

}  // namespace

std::size_t stack_pool::check_size(std::size_t requested) {
  if (requested < smallest_stack || requested > largest_stack)
    throw std::invalid_argument("weft: a stack size of " + std::to_string(requested) +
                                " bytes; give between 16 KiB (16384) and 1 GiB (1073741824), the default is 192 KiB");
  return class_size(class_of(requested));
}

stack_pool::stack_pool(const options& o)
    : default_size_(check_size(o.default_size)),
      cache_bytes_(o.cache_bytes),
      max_stacks_(o.max_stacks),
      guards_(std::make_unique<guard_keeper>(check_guard(o.guard_size), o.canary)),
      shelves_(std::make_unique<shelf[]>(class_count)) {
  for (std::size_t i = 0; i < class_count; ++i) shelves_[i].open(class_size(i), *guards_);
}

void stack_pool::leak() noexcept { (void)shelves_.release(); }

stack_pool::~stack_pool() {
  if (shelves_ == nullptr) return;
  base::invariant(in_use() == 0, "a stack_pool is destroyed while stacks are handed out; drain the caches first");
  if constexpr (base::checked_build) verify();
}

shelf& stack_pool::shelf_of(std::size_t size) const noexcept { return shelves_[class_of(size)]; }

stack_pool::attempt stack_pool::take(shelf& from, std::size_t count) noexcept {
  // They are counted before they are taken, so that max_stacks holds at every moment.
  // acquire pairs with the release in release_batch(): whoever counts a stack as returned finds it on its shelf.
  const std::size_t before = in_use_.fetch_add(count, base::acquire);
  const std::size_t allowed = before >= max_stacks_ ? 0 : std::min(count, max_stacks_ - before);
  const shelf::taken got = allowed == 0 ? shelf::taken{nullptr, 0} : from.take(allowed);
  if (got.count < count) in_use_.fetch_sub(count - got.count, base::relaxed);
  return {got.chain, before != 0};
}

stack_pool::attempt stack_pool::try_acquire(std::size_t size) noexcept {
  base::require(size >= 1 && size <= largest_stack, "stack_pool::acquire: a size that check_size refuses");
  return take(shelf_of(size), 1);
}

stack* stack_pool::acquire(std::size_t size) noexcept { return try_acquire(size).got; }

stack* stack_pool::acquire_batch(std::size_t count) noexcept { return take(shelf_of(default_size_), count).got; }

void stack_pool::release(stack* s) noexcept {
  s->next = nullptr;
  release_batch(s);
}

void stack_pool::release_batch(stack* chain) noexcept {
  while (chain != nullptr) {  // one run of equal sizes at a time
    stack* last = chain;
    std::size_t count = 0;
    for (stack* s = chain; s != nullptr && s->size == chain->size; s = s->next) {
      base::invariant(!s->free, "a stack is released twice");
      s->free = base::checked_build;
      check_canary(*s);
      s->owner = nullptr;
      last = s;
      ++count;
    }
    stack* following = last->next;
    shelf_of(chain->size).put_warm(chain, last, count);
    in_use_.fetch_sub(count, base::release);  // after it is on its shelf; pairs with the acquire in take()
    chain = following;
  }
}

std::size_t stack_pool::surplus_bytes() const noexcept {
  std::size_t warm = 0;
  for (std::size_t i = 0; i < class_count; ++i) warm += shelves_[i].warm_count() * shelves_[i].stack_size();
  return warm > cache_bytes_ ? warm - cache_bytes_ : 0;
}

std::size_t stack_pool::trim() noexcept {
  if (!trimming_.try_acquire()) return 0;
  std::size_t left = cache_bytes_;
  std::size_t trimmed = 0;
  // The default class comes first, because its stacks will be wanted again.
  const std::size_t favourite = class_of(default_size_);
  for (std::size_t i = 0; i < class_count; ++i) {
    shelf& s = shelves_[i == 0 ? favourite : i <= favourite ? i - 1 : i];
    trimmed += s.trim(left / s.stack_size()) * s.stack_size();
    left -= std::min(left, s.warm_count() * s.stack_size());
  }
  trimming_.release();
  return trimmed;
}

guard_kind stack_pool::guards() const noexcept { return guards_->kind(); }

std::size_t stack_pool::reserved_bytes() const noexcept {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < class_count; ++i) sum += shelves_[i].reserved();
  return sum;
}

void stack_pool::verify() const noexcept {
  for (std::size_t i = 0; i < class_count; ++i) shelves_[i].verify();
}

}  // namespace weft::inline v1::context
