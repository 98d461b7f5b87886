// Copies the stack of a task that does not run, while the task may continue at any moment.
#pragma once

#include <cstddef>
#include <memory>

#include "observe/unwind.hpp"
#include "task/task.hpp"

namespace weft::inline v1::observe {

// What a record has that is no atomic, because only the task's holder uses it: read all the same, so it may be of
// another moment than anything else. Whether it was can be told by the ticket.
struct unguarded {
  task::extra extras = 0;
  std::uint8_t shields = 0;
  const void* memory = nullptr;  // the context::stack
  void* body = nullptr;
  const detail::operations* ops = nullptr;
};
[[nodiscard]] unguarded look_unguarded(const task::record& t) noexcept;

class stack_reader {
 public:
  // Stacks are copied up to this depth. What lies further out is left away.
  static constexpr std::size_t most_bytes = std::size_t{256} << 10;

  stack_reader();

  // Copies what lies between the saved stack pointer and the end of the stack. Returns false if the task has no frames,
  // or if what was read does not fit together. The caller has loaded the task's word before and loads it again
  // afterwards: only then is it known whether the copy is the stack of one wait.
  [[nodiscard]] bool copy(const task::record& t, const void* memory) noexcept;
  // Copies once more and compares, for a task that waits in a queue: a yield takes no ticket.
  [[nodiscard]] bool copy_is_the_same(const task::record& t, const void* memory) noexcept;
  [[nodiscard]] stack_copy last_copy() const noexcept { return {sp_, {bytes_.get(), size_}}; }
  // The frames of the last copy.
  [[nodiscard]] std::size_t frames(std::span<frame> out) const noexcept;

 private:
  [[nodiscard]] bool copy_to(std::byte* to, const task::record& t, const void* memory, std::uintptr_t& sp,
                             std::size_t& size) const noexcept;

  std::unique_ptr<std::byte[]> bytes_;
  std::unique_ptr<std::byte[]> again_;
  std::uintptr_t sp_ = 0;
  std::size_t size_ = 0;
};

}  // namespace weft::inline v1::observe
