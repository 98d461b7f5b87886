// The switches between the stacks of fibers and the stack of a worker's own thread, announced to the sanitizers.
//
// Each function switches away and hands `arg` over to the stack that runs next. It returns what was handed over by
// whoever switched back. By then the caller may be on another worker, so it continues with what it was given. These
// functions do not change the worker or the state of the tasks; task_runner.hpp does.
#pragma once

#include "context/annotate.hpp"
#include "context/stack.hpp"
#include "task/fiber.hpp"

namespace weft::inline v1::sched {

// The stack that a worker's thread came with, while a fiber runs on that thread.
struct thread_stack {
  void* sp = nullptr;
  [[no_unique_address]] context::flow annotations;
};

[[nodiscard]] [[gnu::always_inline]] inline void* switch_stacks(task::fiber& from, task::fiber& to,
                                                                void* arg) noexcept {
  return context::switch_flow(from.sp_address(), from.stack->annotations, to.sp(), to.stack->annotations, arg);
}
[[nodiscard]] [[gnu::always_inline]] inline void* switch_stacks(task::fiber& from, thread_stack& to,
                                                                void* arg) noexcept {
  return context::switch_flow(from.sp_address(), from.stack->annotations, to.sp, to.annotations, arg);
}
[[gnu::always_inline]] inline void switch_stacks(thread_stack& from, task::fiber& to, void* arg) noexcept {
  context::switch_flow(&from.sp, from.annotations, to.sp(), to.stack->annotations, arg);
}

// Leaves a stack to which nobody comes back.
[[noreturn]] [[gnu::always_inline]] inline void leave_stack(context::stack& from, task::fiber& to, void* arg) noexcept {
  void* never_resumed = nullptr;
  context::switch_flow(&never_resumed, from.annotations, to.sp(), to.stack->annotations, arg, true);
  __builtin_unreachable();
}
[[noreturn]] [[gnu::always_inline]] inline void leave_stack(context::stack& from, thread_stack& to,
                                                            void* arg) noexcept {
  void* never_resumed = nullptr;
  context::switch_flow(&never_resumed, from.annotations, to.sp, to.annotations, arg, true);
  __builtin_unreachable();
}

// The first code that runs on a stack announces that it is there.
inline void entered_stack_of(const task::fiber& f) noexcept { context::entered(f.stack->annotations); }

}  // namespace weft::inline v1::sched
