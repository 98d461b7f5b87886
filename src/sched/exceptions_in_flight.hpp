// The exceptions that are in flight on a worker's thread, and how they travel with the task that threw or catches them.
//
// The C++ run-time library keeps them per thread (__cxa_eh_globals of the Itanium ABI). A task that is switched away
// from inside a catch block or a destructor takes its own along and finds them again wherever it continues. Usually
// there are none, and then this costs two loads (docs/decisions/0002-migration-safety.md).
#pragma once

#include <cxxabi.h>

#include <utility>

#include "task/task.hpp"

namespace weft::inline v1::sched {

class exceptions_in_flight {
 public:
  // Called once on the worker's own thread.
  void find_those_of_this_thread() noexcept {
    of_thread_ = reinterpret_cast<task::exception_state*>(abi::__cxa_get_globals());
  }
  // As std::uncaught_exceptions() != 0, without its detour through thread-local storage.
  [[nodiscard]] bool is_unwinding() const noexcept { return of_thread_->uncaught != 0; }
  // Called before the switch away from the task.
  [[gnu::always_inline]] void save(task::record* self) noexcept {
    if (of_thread_->caught != nullptr || of_thread_->uncaught != 0) [[unlikely]]
      take(self);
  }
  // Called before a task runs again that has exceptions in flight (task::has_exceptions).
  void restore(task::record* t) noexcept {
    *of_thread_ = task::as_fiber(*t).exceptions;
    t->extras = static_cast<task::extra>(t->extras & ~task::has_exceptions);
  }
  // The task has ended. Whatever it left belongs to nobody.
  void forget() noexcept { *of_thread_ = {}; }

 private:
  [[gnu::cold, gnu::noinline]] void take(task::record* self) noexcept {
    task::as_fiber(*self).exceptions = std::exchange(*of_thread_, {});
    self->extras |= task::has_exceptions;
  }

  task::exception_state* of_thread_ = nullptr;
};

}  // namespace weft::inline v1::sched
