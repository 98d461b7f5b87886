// Stacks: the record that describes one, the pool that a runtime owns, the cache that each worker keeps.
//
// A pool reserves large regions and cuts them into slots: guard below, stack above (region.hpp). Free stacks are either
// warm (their pages are still there; reused last in, first out, because a page fault costs more than anything else here)
// or clean (never used, or given back by trim).
//
//  I4. A stack is in exactly one place: handed out, warm, clean, or never used.            test stack_pool_*, verify()
//  I5. Between a stack and its lower neighbour lies a guard, from the first hand-out to the unmapping of its region;
//      trim does not remove it. Exception: fallbacks, said on stderr (guard.hpp).          test guard_*
//  I6. A stack's record never moves and stays mapped while its pool lives: readable without a lock, if perhaps stale.
//                                                                                          test stack_pool_records_*
//  I7. A failed system call leaks nothing and leaves the pool usable.                      test stack_pool_nth_failure_*
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/check.hpp"
#include "base/lock.hpp"
#include "context/annotate.hpp"

namespace weft::inline v1::context {

class region;
class shelf;
class guard_keeper;

enum class guard_kind : unsigned char { madvise, mprotect, none };  // best first; guard.hpp
[[nodiscard]] const char* name_of(guard_kind kind) noexcept;

// Describes one stack; lives outside the stack's memory. A cache line of its own, because neighbours run on other workers.
struct alignas(base::cache_line) stack {
  std::byte* base = nullptr;  // usable: [base, base + size); the guard lies below base
  std::size_t size = 0;
  stack* next = nullptr;  // for whoever holds the stack; the pool's chains go through it
  void* owner = nullptr;  // whoever uses it now, for reports; the pool only resets it
  region* home = nullptr;  // from here on the pool's business
  std::uint32_t valgrind_id = 0;
  std::uint16_t colour = 0;
  guard_kind guard = guard_kind::none;
  bool canary = false;
  bool free = false;  // in the pool; only checked builds look at it
  bool trimmed = false;  // on its way from warm to clean; belongs to trim()
  [[no_unique_address]] flow annotations;

  // Where a flow starts. Stacks start at different distances from the top of their uppermost page, so that the hot frames of
  // a thousand fibers do not share the same few sets of the L1 cache; half of that page is always left.
  [[nodiscard]] void* top() const noexcept { return base + size - colour; }
};

// The limits of a stack's size, and the classes in between: powers of two and one and a half times such.
inline constexpr std::size_t smallest_stack = std::size_t{16} << 10;
inline constexpr std::size_t largest_stack = std::size_t{1} << 30;
inline constexpr std::size_t default_stack = std::size_t{192} << 10;  // with its guard a slot of 256 KiB

struct stack_pool_options {
  std::size_t default_size = default_stack;
  std::size_t cache_bytes = std::size_t{64} << 20;  // trim leaves at most this much to free stacks
  std::size_t guard_size = std::size_t{64} << 10;
  std::size_t max_stacks = SIZE_MAX;  // handed out at a time; beyond it acquire says nullptr
  bool canary = base::checked_build;  // for every stack, not only for those without a guard; costs a page each
};

// One per runtime, thread-safe. All memory goes back when it is destroyed; nothing may be handed out by then.
class stack_pool {
 public:
  using options = stack_pool_options;

  // Throws std::invalid_argument (check_size, guard_size 0) and std::bad_alloc.
  explicit stack_pool(const options& o = {});
  ~stack_pool();
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;

  // A request rounded up to its class. Throws std::invalid_argument, naming the limits, for sizes outside them.
  [[nodiscard]] static std::size_t check_size(std::size_t requested);

  // A stack of at least `size` (which check_size accepts); nullptr when none can be had.
  [[nodiscard]] stack* acquire(std::size_t size) noexcept;
  [[nodiscard]] stack* acquire() noexcept { return acquire(default_size_); }
  // The same, and whether another stack was handed out at that very moment: if none was and none could be had, none will come back.
  struct attempt {
    stack* got;
    bool others_out;
  };
  [[nodiscard]] attempt try_acquire(std::size_t size) noexcept;
  // Keeps its pages: the next acquire of that size gets it. Not from the stack itself.
  void release(stack* s) noexcept;

  // Up to `count` of the default size as a chain through `next`, ended by nullptr; empty when none can be had.
  [[nodiscard]] stack* acquire_batch(std::size_t count) noexcept;
  void release_batch(stack* chain) noexcept;  // of any sizes

  // Handed out and not released. Those that lie in a stack_cache count: drain the caches before concluding anything.
  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_.load(base::relaxed); }
  // What trim would give back now. Counts each warm stack with its full size: an upper bound of what is resident.
  [[nodiscard]] std::size_t surplus_bytes() const noexcept;
  // Gives the pages of free stacks beyond cache_bytes back to the system, and whole regions that nobody uses with their
  // page tables; returns the bytes, counted as above. One caller at a time does it, others get 0. May take long.
  std::size_t trim() noexcept;

  [[nodiscard]] std::size_t default_size() const noexcept { return default_size_; }
  // There is a limit to how many may be out at a time: none is to lie idle in somebody's cache.
  [[nodiscard]] bool is_limited() const noexcept { return max_stacks_ != SIZE_MAX; }
  [[nodiscard]] guard_kind guards() const noexcept;  // of the next stack, as far as is known
  [[nodiscard]] std::size_t reserved_bytes() const noexcept;  // address space, guards included
  // Nothing is given back any more, not even by the destructor: for the child of a fork, whose frames may lie on these stacks.
  void leak() noexcept;
  void verify() const noexcept;  // I4, for tests and checked builds

 private:
  [[nodiscard]] shelf& shelf_of(std::size_t size) const noexcept;
  [[nodiscard]] attempt take(shelf& from, std::size_t count) noexcept;

  std::size_t default_size_;
  std::size_t cache_bytes_;
  std::size_t max_stacks_;
  std::unique_ptr<guard_keeper> guards_;
  std::unique_ptr<shelf[]> shelves_;  // one per class
  base::lock trimming_;
  alignas(base::cache_line) base::atomic<std::size_t> in_use_{0};
};

// A worker's own few warm stacks of the default size. Single-threaded: only its worker touches it, so a hit costs no atomics.
class stack_cache {
 public:
  static constexpr std::size_t capacity = 64;
  static constexpr std::size_t batch = 32;  // how many travel to or from the pool under one lock

  explicit stack_cache(stack_pool& pool) noexcept : pool_(pool) {}
  ~stack_cache() { drain(); }
  stack_cache(const stack_cache&) = delete;
  stack_cache& operator=(const stack_cache&) = delete;

  // The last one put; from the pool when empty; nullptr when none can be had.
  [[nodiscard]] stack* take() noexcept {
    if (count_ == 0 && !refill()) [[unlikely]]
      return nullptr;
    stack* s = held_[--count_];
    // For the next task that starts: the uppermost page of its stack is often cold, and so is the record that says where.
    if (count_ >= 2) __builtin_prefetch(held_[count_ - 2]);
    if (count_ >= 1) __builtin_prefetch(static_cast<std::byte*>(held_[count_ - 1]->top()) - base::cache_line, 1);
    return s;
  }

  // False, and the stack is still the caller's (pool.release), if it is not of the default size or stacks are limited.
  bool put(stack* s) noexcept {
    if (s->size != pool_.default_size() || pool_.is_limited()) [[unlikely]]
      return false;
    if (count_ == capacity) [[unlikely]]
      spill();
    if constexpr (base::checked_build) check(*s);
    held_[count_++] = s;
    return true;
  }

  // Everything back to the pool, before the worker sleeps for long or ends.
  void drain() noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  bool refill() noexcept;  // false: still empty
  void spill() noexcept;  // the longest unused `batch` to the pool
  static void check(const stack& s) noexcept;

  stack_pool& pool_;
  std::size_t count_ = 0;
  stack* held_[capacity];
};

}  // namespace weft::inline v1::context
