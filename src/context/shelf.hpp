// A shelf holds all stacks of one size class: the warm ones in a chain, and the regions with the clean and the unused
// ones.
#pragma once

#include <cstddef>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/lock.hpp"
#include "context/region.hpp"

namespace weft::inline v1::context {

class alignas(base::cache_line) shelf {
 public:
  shelf() = default;
  ~shelf();
  shelf(const shelf&) = delete;
  shelf& operator=(const shelf&) = delete;
  void open(std::size_t stack_size, guard_keeper& guards) noexcept;

  struct taken {
    stack* chain;
    std::size_t count;
  };
  // Takes as many of `count` stacks as possible: warm ones first, the newest first, then clean ones, then unused ones.
  [[nodiscard]] taken take(std::size_t count) noexcept;
  // The last stack of the chain becomes the first to be taken. The caller has checked the canaries.
  void put_warm(stack* first, stack* last, std::size_t count) noexcept;

  // Leaves at most `keep` warm stacks, and returns how many lost their pages. Only one caller at a time.
  std::size_t trim(std::size_t keep) noexcept;

  [[nodiscard]] std::size_t warm_count() const noexcept { return warm_count_.load(base::relaxed); }
  [[nodiscard]] std::size_t stack_size() const noexcept { return stack_size_; }
  [[nodiscard]] std::size_t reserved() const noexcept;
  void verify() const noexcept;

 private:
  [[nodiscard]] region* find_room() noexcept;
  [[nodiscard]] region* grow() noexcept;
  [[nodiscard]] region* choose_victims(std::size_t keep) noexcept;
  void put_back(region* r) noexcept;
  void set_warm_count(std::size_t count) noexcept { warm_count_.store(count, base::relaxed); }

  mutable base::lock lock_;
  std::size_t stack_size_ = 0;
  guard_keeper* guards_ = nullptr;
  stack* warm_ = nullptr;
  base::atomic<std::size_t> warm_count_{0};  // written under the lock, read without it by surplus_bytes()
  region* oldest_ = nullptr;
  region* youngest_ = nullptr;
  region* first_open_ = nullptr;  // every older region is full
};

}  // namespace weft::inline v1::context
