// The stack of a thread that runs a task at this moment.
//
// A signal interrupts the thread, and its handler copies the registers and the stack to a buffer that is ready for it.
// The handler takes no lock, allocates nothing and never unwinds: it may have interrupted malloc, the dynamic linker or
// a switch of stacks. Whoever asked unwinds the copy.
//
// The signal is SIGURG, whose default is to be ignored, and it is sent to the one thread. Whatever handler the program
// had for it before is called for every signal that is not ours. A signal interrupts system calls that the kernel does not
// restart (poll, nanosleep), so threads are interrupted only when somebody asks for a dump.
//
// observe.R1. A handler that comes late writes nothing: each question has a number, the signal carries it, and the
//     handler begins only if that question is still open.                 test observe/a_late_answer_changes_nothing
// observe.R2. The handler is installed once. A handler that the program sets later stays in place: it may call ours, and
//     if ours were put on top of it again, each would call the other without an end. If it does not call ours, threads
//     do not answer.                                  test observe/a_handler_that_is_set_later_and_calls_on_is_left_*
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/atomic.hpp"
#include "observe/unwind.hpp"

namespace weft::inline v1::observe {

struct interrupted {
  registers at;
  std::uintptr_t address = 0;  // of the copy; 0 if the thread was on no stack of a task
  const void* memory = nullptr;  // the context::stack that it was on, nullptr if on none
  std::vector<std::byte> bytes;

  [[nodiscard]] bool is_on(const void* stack_memory) const noexcept {
    return memory != nullptr && memory == stack_memory;
  }
  [[nodiscard]] std::size_t frames(std::span<frame> out) const noexcept { return unwind({address, bytes}, at, out); }
};

// How long a thread may take to answer. One that does not is blocked in the kernel, stopped, or has the signal blocked.
inline constexpr base::time_ns patience_with_threads = 100'000'000;

// Nothing if the thread does not answer. One caller at a time asks; others wait. Throws std::bad_alloc.
[[nodiscard]] std::optional<interrupted> interrupt_and_copy(int thread_id,
                                                            base::time_ns patience = patience_with_threads);

// The letter that the kernel has for what the thread does: R runs, S sleeps, D waits for a disk, T is stopped. 0 if
// there is no such thread.
[[nodiscard]] char kernel_state_of(int thread_id) noexcept;

}  // namespace weft::inline v1::observe
