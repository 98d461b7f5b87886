// Records one by one from the heap of the execution, so that whoever touches a recycled one is caught. Kept: the pool lives as
// long as the runtime or the last record. Left out: slabs, caches, walking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string_view>

#include "base/atomic.hpp"
#include "task/task.hpp"

namespace weft::inline v1::task {

class record_pool {
 public:
  std::function<void(std::string_view task, std::exception_ptr error)> on_unhandled;
  std::uint32_t fork_generation = 0;

  [[nodiscard]] record* acquire(std::size_t& count) noexcept;
  void release(record* chain) noexcept;
  void retire() noexcept;
  std::optional<std::size_t> trim() noexcept { return 0; }

 private:
  base::atomic<std::size_t> users_{1};  // records handed out, and the runtime
};

// Stands in front of each record.
struct slab {
  record_pool* pool;
  [[nodiscard]] static slab* of(const record* r) noexcept;
};

class record_cache {
 public:
  explicit record_cache(record_pool& pool) noexcept : pool_(pool) {}
  [[nodiscard]] record* take() noexcept {
    std::size_t one = 1;
    return pool_.acquire(one);
  }
  void put(record* r) noexcept {
    r->next = nullptr;
    pool_.release(r);
  }
  void drain() noexcept {}

 private:
  record_pool& pool_;
};

}  // namespace weft::inline v1::task
