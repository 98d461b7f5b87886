// The core's half of join_handle and task_ref.
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "sched/scheduler.hpp"
#include "task/name.hpp"
#include "wait/join.hpp"
#include "wait/permit.hpp"
#include <weft/errors.hpp>
#include <weft/join_handle.hpp>

namespace weft::inline v1 {

namespace detail {
namespace {

using task::as_record;

// Keeps the record's memory readable during a wait. Somebody else may join the task meanwhile and drop the last
// reference to its record, whose lock a cancelled waiter still takes (wait.J2). Records of the waiter's own runtime
// stay memory as long as the waiter runs. Another runtime may end, so a waiter from outside of it holds a reference.
class kept_pool {
 public:
  kept_pool(task::record& target, task::record* self) noexcept
      : foreign_(self != nullptr && task::slab::of(self)->pool == task::slab::of(&target)->pool ? nullptr : &target) {
    if (foreign_ != nullptr) sched::add_reference(foreign_);
  }
  ~kept_pool() {
    if (foreign_ != nullptr) sched::drop_reference(foreign_);
  }
  kept_pool(const kept_pool&) = delete;
  kept_pool& operator=(const kept_pool&) = delete;

 private:
  task::record* foreign_;
};

[[gnu::noinline]] void wait_for_slowly(task::record& target, task::record* self, std::source_location where) {
  if (&target == self) throw_usage("a task cannot join itself: it would wait for its own end for ever", where);
  const kept_pool kept(target, self);
  waits::join_wait w(target);
  if (!w.try_complete() && task::origin_of(target).fork_generation != sched::fork_generation())
    throw_usage(
        "this process was forked from the one that runs the task; it cannot wait for it. Only exec or _exit are "
        "possible");
  waits::node n;
  if (waits::fiber_wait(w, n, {.interruptible = true, .where = where}) == waits::outcome::cancelled)
    waits::throw_cancelled();
}

}  // namespace

// The usual case, a task that joins one that has ended, needs neither a node nor a reference.
void wait_for(task_head* t, std::source_location where) {
  sched::worker* w = sched::this_worker();
  task::record* self = w == nullptr ? nullptr : w->current();
  const bool simple = is_finished(t) && self != nullptr &&
                      (self->word.peek() & task::state_word::cancel_requested) == 0 && w->spend_budget();
  if (!simple) wait_for_slowly(*as_record(t), self, where);
}

bool is_finished(const task_head* t) noexcept { return task::state_word::is_final(as_record(t)->word.load()); }

ended how_it_ended(const task_head* t) noexcept {
  return task::state_word::phase_of(as_record(t)->word.load()) == task::phase::done ? ended::done : ended::cancelled;
}

void request_cancel(task_head* t) noexcept { waits::cancel(*as_record(t)); }

void drop_handle(task_head* t) noexcept {
  task::record* r = as_record(t);
  if (r->word.drop_result())
    if (std::exception_ptr unclaimed = r->ops->dispose(r->body)) sched::report_unhandled(*r, unclaimed);
  sched::drop_reference(r);
}

// A handle that an exception drops was probably meant to be joined. The task is forgiven: an exception that it ends
// with does not end the process.
void abandon_handle(task_head* t) noexcept {
  if (std::uncaught_exceptions() > 0) as_record(t)->word.forgive();
  drop_handle(t);
}

bool join_operation::publish(waits::node& n) noexcept { return waits::join_wait(*as_record(task_)).publish(n); }
void join_operation::unpublish(waits::node& n) noexcept { waits::join_wait(*as_record(task_)).unpublish(n); }
base::lock* join_operation::own_lock() noexcept { return &as_record(task_)->join_lock; }
waits::subject join_operation::what() const noexcept { return {&waits::join_kind, as_record(task_)}; }

void add_reference(task_head* t) noexcept { sched::add_reference(as_record(t)); }
void drop_reference(task_head* t) noexcept { sched::drop_reference(as_record(t)); }
void unpark(task_head* t) noexcept { waits::unpark(*as_record(t)); }
void park_if(bool (*still)(const void*), const void* context, std::source_location where) {
  waits::park_if(still, context, where);
}
task_head* running_task() noexcept { return waits::current_task(); }
std::uint64_t id_of(const task_head* t) noexcept { return as_record(t)->id.load(base::relaxed); }
std::size_t name_of(const task_head* t, char (&text)[name_capacity]) noexcept {
  // The copy fails while the task writes its name, which is a few words.
  while (!task::try_copy_name(*as_record(t), text)) std::this_thread::yield();
  return std::strlen(text);
}
void throw_task_cancelled(const task_head* t) {
  char name[name_capacity];
  const std::size_t length = name_of(t, name);
  throw task_cancelled({name, length}, id_of(t));
}
void throw_error_of(task_head* t, std::exception_ptr error) {
  as_record(t)->word.take_error();
  std::rethrow_exception(std::move(error));
}

}  // namespace detail
}  // namespace weft::inline v1
