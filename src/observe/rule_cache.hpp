// Rules by pc: the parked tasks of a program stand at few places, so that most stacks need no table.
//
// The memory is fixed, because malloc may be locked when somebody wants a dump. Two pcs that fall on the same slot take
// turns. An object can be unloaded and another one loaded at its place, so a slot holds only for the object that it was
// filled from.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/lock.hpp"
#include "observe/cfa_program.hpp"

namespace weft::inline v1::observe {

class rule_cache {
 public:
  // Null if it is not here.
  [[nodiscard]] const frame_rules* find(const object& in, std::uintptr_t pc) const noexcept {
    const slot& s = slots_[index(pc)];
    return s.pc == pc && s.in == in ? &s.rules : nullptr;
  }
  void keep(const object& in, std::uintptr_t pc, const frame_rules& rules) noexcept {
    slots_[index(pc)] = {pc, in, rules};
  }

  // The cache for one unwinding, or nothing if another thread uses it: nobody waits (observe.U3). A thread that a fork did
  // not take along may hold it for ever.
  class use {
   public:
    explicit use(rule_cache& c) noexcept : cache_(c.lock_.try_acquire() ? &c : nullptr) {}
    ~use() {
      if (cache_ != nullptr) cache_->lock_.release();
    }
    use(const use&) = delete;
    use& operator=(const use&) = delete;
    [[nodiscard]] rule_cache* get() const noexcept { return cache_; }

   private:
    rule_cache* cache_;
  };

 private:
  static constexpr std::size_t size = 1024;  // untouched slots cost no memory

  struct slot {
    std::uintptr_t pc = 0;
    object in;
    frame_rules rules;
  };
  static std::size_t index(std::uintptr_t pc) noexcept { return pc * 0x9e3779b97f4a7c15u >> 54; }
  static_assert(size == std::size_t{1} << (64 - 54));

  base::lock lock_;
  slot slots_[size] = {};
};

}  // namespace weft::inline v1::observe
