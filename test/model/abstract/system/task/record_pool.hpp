// Records one by one from the heap of the execution, so that whoever touches a recycled one is caught. Kept: the pool lives as
// long as the runtime or the last record. Left out: slabs, caches, walking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/atomic.hpp"
#include "task/origin.hpp"
#include "task/task.hpp"

namespace weft::inline v1::task {

class record_pool {
 public:
  explicit record_pool(origin of_all = {}) noexcept : origin_(std::move(of_all)) {}
  [[nodiscard]] const origin& origin_of_all() const noexcept { return origin_; }

  [[nodiscard]] record* acquire(std::size_t& count) noexcept;
  void release(record* chain) noexcept;
  void retire() noexcept;
  std::optional<std::size_t> trim() noexcept { return 0; }

 private:
  const origin origin_;
  base::atomic<std::size_t> users_{1};  // records handed out, and the runtime
};

// Stands in front of each record.
struct slab {
  record_pool* pool;
  [[nodiscard]] static slab* of(const record* r) noexcept;
};

[[nodiscard]] inline const origin& origin_of(const record& r) noexcept { return slab::of(&r)->pool->origin_of_all(); }

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
