// Stacks: the record that describes one, the pool that a runtime owns, the cache that each worker keeps.
//
// A pool reserves large regions and cuts them into slots: a guard below, the stack above (region.hpp). Free stacks are
// either warm (their pages are still there; they are reused last in, first out, because a page fault costs more than
// anything else here) or clean (never used, or given back by trim).
//
// context.I4. A stack is in exactly one place: handed out, warm, clean, being trimmed, or never used.
//                checked build: stack_pool::verify(), test context/many_threads_share_it_*, context/trim_leaves_alone_*
// context.I5. Between a stack and its lower neighbour lies a guard, from the first hand-out to the unmapping of its
//     region; trim does not remove it. The fallbacks are an exception, and are reported once on stderr (guard.hpp).
//                                                                                                  test context/guard_*
// context.I6. A stack's record never moves and stays mapped while its pool lives: it can be read without a lock, though
//     it may be stale.                                                             test context/records_stay_readable_*
// context.I7. A failed system call leaks nothing and leaves the pool usable.
//                           test context/nth_failure_*, context/says_nullptr_while_*, context/trim_that_may_not_unmap_*
// context.I9. The memory of free stacks is bounded: by stack_cache::capacity for each worker, and by cache_bytes after
//     trim.                                                 test context/is_bounded_*, context/trim_gives_memory_back_*
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

// Describes one stack. It lives outside of the stack's memory, on a cache line of its own, because neighbours run on
// other workers.
struct alignas(base::cache_line) stack {
  std::byte* base = nullptr;  // usable: [base, base + size); the guard lies below base
  std::size_t size = 0;
  stack* next = nullptr;  // for the holder of the stack; links the pool's chains
  void* owner = nullptr;  // the present user, for reports; the pool only resets it
  region* home = nullptr;  // this and what follows is for the pool
  std::uint32_t valgrind_id = 0;
  std::uint16_t colour = 0;
  guard_kind guard = guard_kind::none;
  bool canary = false;
  bool free = false;  // it is in the pool; only checked builds look at this
  bool trimmed = false;  // on its way from warm to clean; belongs to trim()
  [[no_unique_address]] flow annotations;

  // Where a flow starts. Stacks start at different distances from the top of their uppermost page, so that the hot
  // frames of a thousand fibers do not share the same few sets of the first-level cache. At least half of that page is
  // always left.
  [[nodiscard]] void* top() const noexcept { return base + size - colour; }
};

// The limits of a stack's size. The classes in between are powers of two, and one and a half times powers of two.
inline constexpr std::size_t smallest_stack = std::size_t{16} << 10;
inline constexpr std::size_t largest_stack = std::size_t{1} << 30;
inline constexpr std::size_t default_stack = std::size_t{192} << 10;  // with its guard it fills a slot of 256 KiB

struct stack_pool_options {
  std::size_t default_size = default_stack;
  std::size_t cache_bytes = std::size_t{64} << 20;  // trim leaves at most this much memory in free stacks
  std::size_t guard_size = std::size_t{64} << 10;
  std::size_t max_stacks = SIZE_MAX;  // the most handed out at a time; beyond it acquire returns nullptr
  bool canary = base::checked_build;  // for every stack, not only for those without a guard; costs a page each
};

// One for each runtime; thread-safe. All memory is given back when it is destroyed. No stack may be handed out by then.
class stack_pool {
 public:
  using options = stack_pool_options;

  // Throws std::invalid_argument (check_size, guard_size 0) and std::bad_alloc.
  explicit stack_pool(const options& o = {});
  ~stack_pool();
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;

  // Returns the request rounded up to its class. Throws std::invalid_argument, which names the limits, for sizes
  // outside of them.
  [[nodiscard]] static std::size_t check_size(std::size_t requested);

  // Returns a stack of at least `size` (which check_size accepts); nullptr if none can be had.
  [[nodiscard]] stack* acquire(std::size_t size) noexcept;
  [[nodiscard]] stack* acquire() noexcept { return acquire(default_size_); }
  // The same, and whether another stack was handed out at that very moment. If none was, and none could be had, none
  // will come back.
  struct attempt {
    stack* got;
    bool others_out;
  };
  [[nodiscard]] attempt try_acquire(std::size_t size) noexcept;
  // The stack keeps its pages, and the next acquire of that size gets it. Must not be called on the stack itself.
  void release(stack* s) noexcept;

  // Returns up to `count` stacks of the default size, as a chain through `next` that ends with nullptr; an empty chain
  // if none can be had.
  [[nodiscard]] stack* acquire_batch(std::size_t count) noexcept;
  void release_batch(stack* chain) noexcept;  // of any sizes

  // Stacks that are handed out and not released. Those in a stack_cache count as well: drain the caches before you draw
  // a conclusion.
  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_.load(base::relaxed); }
  // What trim would give back now. Each warm stack counts with its full size, so this is an upper bound of what is
  // resident.
  [[nodiscard]] std::size_t surplus_bytes() const noexcept;
  // Gives the pages of free stacks beyond cache_bytes back to the system, and whole regions that nobody uses with their
  // page tables. Returns the bytes, counted as above. Only one caller at a time does it; others get 0. It may take
  // long.
  std::size_t trim() noexcept;

  [[nodiscard]] std::size_t default_size() const noexcept { return default_size_; }
  // True if the number of stacks handed out at a time is limited. Then no stack may lie idle in a cache.
  [[nodiscard]] bool is_limited() const noexcept { return max_stacks_ != SIZE_MAX; }
  [[nodiscard]] guard_kind guards() const noexcept;  // of the next stack, as far as is known
  [[nodiscard]] std::size_t reserved_bytes() const noexcept;  // address space, guards included
  // From now on nothing is given back, not even by the destructor. For the child of a fork, whose frames may lie on
  // these stacks.
  void leak() noexcept;
  void verify() const noexcept;  // context.I4, for tests and checked builds

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

// A worker's own few warm stacks of the default size. Single-threaded: only its worker accesses it, so a hit needs no
// atomics.
class stack_cache {
 public:
  static constexpr std::size_t capacity = 64;
  static constexpr std::size_t batch = 32;  // how many move to or from the pool under one lock

  explicit stack_cache(stack_pool& pool) noexcept : pool_(pool) {}
  ~stack_cache() { drain(); }
  stack_cache(const stack_cache&) = delete;
  stack_cache& operator=(const stack_cache&) = delete;

  // Returns the stack that was put last; if there is none, one from the pool; nullptr if none can be had.
  [[nodiscard]] stack* take() noexcept {
    if (count_ == 0 && !refill()) [[unlikely]]
      return nullptr;
    stack* s = held_[--count_];
    // Prefetches for the next task that starts: the uppermost page of its stack is often cold, and so is the record
    // that says where it is.
    if (count_ >= 2) __builtin_prefetch(held_[count_ - 2]);
    if (count_ >= 1) __builtin_prefetch(static_cast<std::byte*>(held_[count_ - 1]->top()) - base::cache_line, 1);
    return s;
  }

  // Returns false if the stack is not of the default size or stacks are limited. The caller then still owns it
  // (pool.release).
  bool put(stack* s) noexcept {
    if (s->size != pool_.default_size() || pool_.is_limited()) [[unlikely]]
      return false;
    if (count_ == capacity) [[unlikely]]
      spill();
    if constexpr (base::checked_build) check(*s);
    held_[count_++] = s;
    return true;
  }

  // Gives everything back to the pool, before the worker sleeps for long or ends.
  void drain() noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  bool refill() noexcept;  // false if the cache is still empty
  void spill() noexcept;  // gives the `batch` longest unused stacks to the pool
  static void check(const stack& s) noexcept;

  stack_pool& pool_;
  std::size_t count_ = 0;
  stack* held_[capacity];
};

}  // namespace weft::inline v1::context
