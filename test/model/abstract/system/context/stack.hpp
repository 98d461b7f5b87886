// Stacks from the heap of the execution. Kept: what the scheduler calls. Left out: pools, caches, guards, limits; each worker
// has as many as it wants, so that handing them out is no step of the explorer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "base/check.hpp"
#include "context/annotate.hpp"

namespace weft::inline v1::context {

inline constexpr std::size_t default_stack = std::size_t{64} << 10;  // room for a trace

struct stack {
  std::byte* base = nullptr;
  std::size_t size = default_stack;
  stack* next = nullptr;
  void* owner = nullptr;
  [[no_unique_address]] flow annotations;
  [[nodiscard]] void* top() const noexcept { return base + size; }
};

struct stack_pool_options {
  std::size_t default_size = default_stack;
  std::size_t cache_bytes = 0;
  std::size_t max_stacks = 0;
};

class stack_pool {
 public:
  explicit stack_pool(const stack_pool_options&) noexcept {}
  [[nodiscard]] static std::size_t check_size(std::size_t) noexcept { return default_stack; }
  [[nodiscard]] static stack* acquire(std::size_t = default_stack) noexcept;  // system.cpp
  static void release(stack* s) noexcept;
  struct attempt {
    stack* got;
    bool others_out;
  };
  [[nodiscard]] static attempt try_acquire(std::size_t size) noexcept { return {acquire(size), true}; }
  std::size_t trim() noexcept { return 0; }
  void leak() noexcept {}
  [[nodiscard]] std::size_t default_size() const noexcept { return default_stack; }
};

class stack_cache {
 public:
  explicit stack_cache(stack_pool&) noexcept {}
  ~stack_cache() { drain(); }
  stack_cache(const stack_cache&) = delete;
  stack_cache& operator=(const stack_cache&) = delete;

  [[nodiscard]] stack* take() noexcept {
    if (held_ == nullptr) return stack_pool::acquire();
    --count_;
    return std::exchange(held_, held_->next);
  }
  bool put(stack* s) noexcept {
    s->next = std::exchange(held_, s);
    ++count_;
    return true;
  }
  void drain() noexcept {
    while (held_ != nullptr) stack_pool::release(std::exchange(held_, held_->next));
    count_ = 0;
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  stack* held_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace weft::inline v1::context
