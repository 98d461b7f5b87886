// The report on a stack that ran into its guard, and what it takes to make that report: a stack to run the handler on,
// and the handler.
//
// Everything here that runs in the handler is async-signal-safe: no allocation, no locks, write(2) only. Symbols come
// from dladdr and the unwinder, which are safe enough for a process that is about to abort.
//
// context.I8. A fault on a guard is reported with task, size and place, and then the process aborts. Every other fault
//     goes where it went before.                                                                test context/overflow_*
#pragma once

#include <cstddef>

namespace weft::inline v1::context {

struct stack;

// Writes who s.owner is, e.g. `"fetch" (#17)`, in at most `size` characters, and returns how many. Called in a signal
// handler.
using describe_function = std::size_t (*)(const stack& s, char* buffer, std::size_t size);
// Likewise writes how its owner can be given a stack of `wanted` bytes, e.g. `spawn(attributes{.stack_size = 393216},
// ...)`.
using advise_function = std::size_t (*)(const stack& s, std::size_t wanted, char* buffer, std::size_t size);

// Installs the handler for the whole process, once. Later calls only replace the two functions. It handles SIGSEGV and
// SIGBUS; faults that are not on a guard of ours go to the handler that was there before.
void install_overflow_reporter(describe_function describe, advise_function advise = nullptr) noexcept;

// What `describe` writes, or a text for its absence, as a C string.
void describe_owner(const stack& s, char* buffer, std::size_t size) noexcept;

// Gives the calling thread a stack for signal handlers, without which a fault on a guard could not be reported. The
// destructor takes it away again, on the same thread. If memory is short there is no such stack, and an overflow ends
// in a plain SIGSEGV.
class alternate_signal_stack {
 public:
  alternate_signal_stack() noexcept;
  ~alternate_signal_stack();
  alternate_signal_stack(const alternate_signal_stack&) = delete;
  alternate_signal_stack& operator=(const alternate_signal_stack&) = delete;

  [[nodiscard]] bool installed() const noexcept { return memory_ != nullptr; }

 private:
  void* memory_ = nullptr;
  void* before_ = nullptr;  // what the thread had before
  std::size_t before_size_ = 0;
  int before_flags_ = 0;
};

}  // namespace weft::inline v1::context
