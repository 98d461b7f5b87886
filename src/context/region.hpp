// A region: one large reservation cut into slots of one size class, and the records of its stacks.
//
//   records (their own mapping):  | region | stack 0 | stack 1 | …          stays until the pool ends (context.I6)
//   slots:                        | guard | stack 0 | guard | stack 1 | …   may be unmapped by trim and mapped again
//
// A shelf (shelf.hpp) owns regions and locks them. Only find() is for others: a signal handler walks the list of all
// live regions without a lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "context/stack.hpp"
#include "context/system_memory.hpp"

namespace weft::inline v1::context {

// The distance between two slots: guard and stack, and one page more if the number of pages would be even. With a power
// of two the uppermost pages of all stacks, which are the ones in use, would fall into two of the TLB's 128 sets.
[[nodiscard]] inline std::size_t slot_stride(std::size_t guard_size, std::size_t stack_size) noexcept {
  const std::size_t both = guard_size + stack_size;
  return both / page_size() % 2 == 0 ? both + page_size() : both;
}

class alignas(base::cache_line) region {
 public:
  // Creates a region with its slots mapped and listed. Returns nullptr, and leaves nothing behind, if the system
  // refuses.
  [[nodiscard]] static region* create(std::size_t capacity, std::size_t stack_size, guard_keeper& guards) noexcept;
  // Removes the region from the list and unmaps everything, this object included. Waits for a signal handler that walks
  // the list.
  static void destroy(region* r) noexcept;

  // Returns a clean stack, one that was used before if possible; nullptr if there is none. Needs is_mapped().
  [[nodiscard]] stack* take() noexcept;
  void put_clean(stack* s) noexcept;
  // Unmaps the slots and empties the records. No stack may be handed out or warm. Returns false, with nothing changed,
  // if the system refused.
  [[nodiscard]] bool retire() noexcept;
  // Maps the slots again after retire(). Returns false if the system refuses.
  [[nodiscard]] bool map_again() noexcept;
  // Gives back the pages of all stacks marked `trimmed` among the first `count`. Where the system refuses (locked
  // memory) they count as clean all the same: nobody needs their contents, and asking again would not help.
  void give_back_pages(std::size_t count) noexcept;
  [[nodiscard]] stack& record(std::size_t i) noexcept { return records()[i]; }

  [[nodiscard]] bool is_mapped() const noexcept { return begin_.load(base::relaxed) != 0; }
  [[nodiscard]] bool has_room() const noexcept { return !retiring && (clean_ != nullptr || used_ < capacity_); }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t reserved() const noexcept { return is_mapped() ? capacity_ * stride_ : 0; }
  [[nodiscard]] std::size_t clean_count() const noexcept { return clean_count_; }
  [[nodiscard]] std::size_t used() const noexcept { return used_; }

  // These three belong to the shelf. context.I4: out + warm + clean_count() + victim_count == used().
  std::size_t out = 0;
  std::size_t warm = 0;
  region* younger = nullptr;

  // Used during trim.
  std::size_t quota = 0;  // how many warm stacks stay
  std::size_t victim_count = 0;  // stacks marked `trimmed`, all among the first used_before
  std::size_t used_before = 0;
  region* trim_next = nullptr;
  bool retiring = false;

  // Finds the stack whose slot holds `address`, or nullptr. `in_guard` means that the address lies in the guard below
  // that stack. Async-signal-safe.
  struct found {
    const stack* which;
    bool in_guard;
  };
  [[nodiscard]] static found find(std::uintptr_t address) noexcept;

 private:
  region(std::size_t capacity, std::size_t stack_size, std::size_t records_bytes, guard_keeper& guards) noexcept;
  [[nodiscard]] stack* records() noexcept { return reinterpret_cast<stack*>(this + 1); }
  [[nodiscard]] bool unmap_slots() noexcept;
  void list() noexcept;
  void unlist() noexcept;

  const std::size_t capacity_;
  const std::size_t stack_size_;
  const std::size_t stride_;
  const std::size_t records_bytes_;
  guard_keeper& guards_;
  base::atomic<std::uintptr_t> begin_{0};  // 0 while the slots are not mapped; find() reads it
  std::size_t used_ = 0;  // slots [0, used_) were handed out since the mapping
  stack* clean_ = nullptr;
  std::size_t clean_count_ = 0;
  base::atomic<region*> listed_next_{nullptr};
};

}  // namespace weft::inline v1::context
