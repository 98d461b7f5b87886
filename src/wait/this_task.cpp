#include <weft/this_task.hpp>

#include <thread>

#include "sched/scheduler.hpp"
#include "task/name.hpp"
#include "wait/fiber_wait.hpp"

namespace weft::inline v1 {
namespace {

task::record& running_or_throw() {
  task::record* self = waits::current_task();
  if (self == nullptr)
    detail::throw_usage("this_task was asked on a thread that runs no task; ask this_task::running() first");
  return *self;
}

}  // namespace

void yield(std::source_location where) {
  sched::worker* w = sched::this_worker();
  if (w == nullptr || w->current() == nullptr) return std::this_thread::yield();
  waits::check_may_suspend(0, where);
  task::record& self = *w->current();
  if ((self.word.peek() & task::state_word::cancel_requested) != 0) [[unlikely]]
    waits::check_cancelled();
  w->yield();
}

namespace this_task {

std::uint64_t id() { return running_or_throw().id.load(base::relaxed); }
std::string_view name() { return task::own_name(running_or_throw()); }
void set_name(std::string_view name) { task::set_name(running_or_throw(), name); }
task_ref ref() { return detail::handle_access::ref(&running_or_throw()); }

bool is_cancelled() { return (running_or_throw().word.load() & task::state_word::cancel_requested) != 0; }
void check() {
  (void)running_or_throw();
  waits::check_cancelled();
}

shield::shield() {
  task::record& self = running_or_throw();
  if (self.shields == UINT8_MAX)
    detail::throw_usage("more than 255 shields are nested: a recursion that shields each level?");
  ++self.shields;
}
shield::~shield() {
  if (task::record* self = waits::current_task()) --self->shields;  // in the child of a fork no task runs
}

}  // namespace this_task
}  // namespace weft::inline v1
