// The report on a stack that ran into its guard, and what it takes to make it: a stack to stand on, and a handler.
//
// Everything here that runs in the handler is async-signal-safe: no allocation, no locks, write(2) only; symbols come from
// dladdr and the unwinder, which are safe enough for a process that is about to abort.
#pragma once

#include <cstddef>

namespace weft::inline v1::context {

struct stack;

// Writes who s.owner is, e.g. `"fetch" (#17)`, at most `size` characters, and returns how many. Called in a signal handler.
using describe_function = std::size_t (*)(const stack& s, char* buffer, std::size_t size);
// Likewise how its owner is given a stack of `wanted` bytes, e.g. `spawn(attributes{.stack_size = 393216}, ...)`.
using advise_function = std::size_t (*)(const stack& s, std::size_t wanted, char* buffer, std::size_t size);

// Process-wide and once; later calls only replace the two functions. Handles SIGSEGV and SIGBUS; faults that are not on a guard of ours
// go to whoever handled them before.
void install_overflow_reporter(describe_function describe, advise_function advise = nullptr) noexcept;

// `describe`, or its absence, as a C string.
void describe_owner(const stack& s, char* buffer, std::size_t size) noexcept;

// Gives the calling thread a stack for signal handlers, without which a fault on a guard could not be reported; takes it away
// again in the destructor, on the same thread. If memory is short there is none, and an overflow ends in a plain SIGSEGV.
class alternate_signal_stack {
 public:
  alternate_signal_stack() noexcept;
  ~alternate_signal_stack();
  alternate_signal_stack(const alternate_signal_stack&) = delete;
  alternate_signal_stack& operator=(const alternate_signal_stack&) = delete;

  [[nodiscard]] bool installed() const noexcept { return memory_ != nullptr; }

 private:
  void* memory_ = nullptr;
  void* before_ = nullptr;  // what the thread had
  std::size_t before_size_ = 0;
  int before_flags_ = 0;
};

}  // namespace weft::inline v1::context
