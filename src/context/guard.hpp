// What keeps an overflowing stack from damaging its neighbour: a guard page if possible, else a canary.
//
// There are three ways, best first. WEFT_GUARD=madvise|mprotect|none in the environment chooses where to begin:
//   madvise   MADV_GUARD_INSTALL (Linux 6.13): marks page-table entries, needs no mapping per guard, any number of them
//   mprotect  two mappings per guard; only as many as leave a third of vm.max_map_count to the rest of the process
//   none      a canary at the lower end of the stack, verified when the stack is released
// A fallback is reported once on stderr. If the kernel refuses one way, the same pool does not try that way again.
#pragma once

#include <cstddef>

#include "base/atomic.hpp"
#include "context/stack.hpp"

namespace weft::inline v1::context {

class guard_keeper {
 public:
  guard_keeper(std::size_t guard_size, bool always_canary) noexcept;  // reads WEFT_GUARD

  // Guards as many stacks of a chain as one system call can. This is an optimization for protect(), which does the
  // rest; it saves a quarter.
  void protect_ahead(stack* chain) noexcept;
  // Guards the pages below s.base, or gives s a canary. Returns false if memory is out; s is unchanged then.
  [[nodiscard]] bool protect(stack& s) noexcept;
  // Called when the guard of s is about to disappear with its region.
  void forget(const stack& s) noexcept;

  [[nodiscard]] guard_kind kind() const noexcept { return kind_.load(base::relaxed); }
  // True if the kernel accepts advice for many ranges in one call.
  [[nodiscard]] bool has_calls_for_many() const noexcept {
    return kind() == guard_kind::madvise && vectored_.load(base::relaxed);
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  void fall_back(guard_kind to, const char* why) noexcept;
  [[nodiscard]] bool by_mprotect(const stack& s) noexcept;

  std::size_t size_;
  bool always_canary_;
  base::atomic<bool> vectored_;  // false once the kernel, a sandbox or valgrind refused the call for many
  base::atomic<guard_kind> kind_;
};

// ---- the canary: for stacks without a guard, and where the options ask for it (checked builds do)

inline constexpr std::size_t canary_size = 64;
void write_canary(stack& s) noexcept;
// If the canary is damaged, ends the process with a report that names size and owner.
void check_canary(const stack& s) noexcept;

}  // namespace weft::inline v1::context
