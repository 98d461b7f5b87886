// A group of tasks that borrow locals, and end before these locals do.
//
//   int left = 0, right = 0;
//   weft::task_group group;                                       // declared after what its tasks borrow
//   group.spawn([&] { left = count(first_half); });
//   group.spawn([&] { right = count(second_half); });
//   group.join();                                                 // waits for them; throws what they threw
//
// On every way out of the block C++ destroys the group before the locals that are declared above it, and the group's
// destructor waits for every task of the group. So tasks may borrow whatever is declared above the group.
#pragma once

#include <chrono>
#include <exception>
#include <source_location>

#include <weft/detail/scope_core.hpp>
#include <weft/detail/time_point.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/this_task.hpp>

namespace weft::inline v1 {

// Has spawn, supervise, cancel and is_cancelled, as a scope has. Anybody may call these while the group lives: the
// owner, its children (which borrow the group), other tasks and threads. join() and the destructor are for the owner
// only: the task or outside thread that made the group.
//
// A task of the group that throws cancels the others. The owner is not disturbed: it learns of the failure in join().
class task_group : public detail::scope_calls<detail::no_reservation> {
 public:
  // Makes a group in the runtime of the running task. Throws std::bad_alloc, and usage_error outside of a task.
  explicit task_group(std::source_location where = std::source_location::current()) : task_group(nullptr, {}, where) {}
  explicit task_group(const scope_options& o, std::source_location where = std::source_location::current())
      : task_group(nullptr, o, where) {}
  // Makes a group in that runtime, which must outlive the group. For outside threads.
  explicit task_group(runtime& in, std::source_location where = std::source_location::current())
      : task_group(&in, {}, where) {}
  task_group(runtime& in, const scope_options& o, std::source_location where = std::source_location::current())
      : task_group(&in, o, where) {}

  // Without a join() before it, the destructor leaves the group early: it cancels the tasks that have not ended, and
  // waits for them, whatever happens to the owner meanwhile. Never throws; never a cancellation point. It reports two
  // things, to runtime_options::on_unhandled_exception if that is set:
  //   What a task threw, unless somebody has joined that task. Without the handler this ends the process, as does every
  //     exception that nobody takes. But if an exception leaves the block of the group, or the owner is cancelled, it
  //     is one line on stderr.
  //   That tasks were cut short: once, as scope_cancelled, or as one line on stderr. It is not reported where it is
  //     known to be intended: after cancel(), if an exception leaves the block of the group, or if the owner is
  //     cancelled.
  // If another task or thread than the owner destroys the group, the process ends with a message.
  ~task_group() { detail::leave_group(core_, std::uncaught_exceptions() > unwinding_); }
  task_group(const task_group&) = delete;
  task_group& operator=(const task_group&) = delete;

  // Waits for every task of the group, also for tasks that are spawned meanwhile. A cancellation point: if the owner is
  // cancelled, the tasks are cancelled, and join() throws when they have ended. It throws
  //   what was thrown first by a task (with failures::collect: scope_failures, which holds all of them);
  //   `cancelled`; usage_error if the caller is not the owner.
  // Returns false if cancel(), the deadline or the stop_token has cut tasks short. Afterwards, also if it throws, the
  // group is as new: not failed, not cancelled (unless its stop_token is stopped), and without a deadline.
  bool join(std::source_location where = std::source_location::current()) { return detail::join_group(core_, where); }

  // Cancels the tasks at that time, unless they are joined before. A later call replaces the time. Never a cancellation
  // point. A caller outside of the group's runtime waits until a worker has set the deadline.
  void cancel_at(std::chrono::steady_clock::time_point when) const {
    if (detail::is_inside(core_)) return detail::cancel_scope_at(core_, when);
    const auto set = [&] {
      detail::spawn_in(detail::scheduler_of(core_), nullptr, [this, when] {
        detail::cancel_scope_at(core_, when);
      }).join();
    };
    if (!this_task::running()) return set();
    this_task::shielded(set);  // a task of another runtime
  }
  template <class Rep, class Period>
  void cancel_after(std::chrono::duration<Rep, Period> time) const {
    cancel_at(detail::time_after(time));
  }

 private:
  task_group(runtime* in, const scope_options& o, std::source_location where)
      : scope_calls(detail::open_group(in, o.failures, o.stop, where)) {}

  const int unwinding_ = std::uncaught_exceptions();  // exceptions in flight when the group was made
};

}  // namespace weft::inline v1
