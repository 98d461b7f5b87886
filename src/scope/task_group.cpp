// The part of task_group.hpp that is not a template.
#include <cstdio>
#include <memory>

#include "sched/runtime_access.hpp"
#include "scope/group.hpp"
#include <weft/runtime.hpp>
#include <weft/scope_errors.hpp>

namespace weft::inline v1::detail {
namespace {

group_core& as_group(scope_core* s) noexcept { return *static_cast<group_core*>(s); }

bool is_cancelled(const task::record* t) noexcept {
  return t != nullptr && (t->word.peek() & task::state_word::cancel_requested) != 0;
}

// Nobody failed, but the owner left the group without join(): children that had not ended were unwound, and their work
// is half done. The owner probably did not intend that, so it is reported.
void report_cut_short(const group_core::round& last, const std::source_location& where) noexcept {
  const task::record& first = last.first_cut_short();
  char text[512];
  std::snprintf(
      text, sizeof text,
      "weft: the task_group of %s:%u was left without join(): %zu of its tasks %s cut short, the first \"%s\" "
      "(#%llu); join() it, or cancel() it before if that is meant",
      where.file_name(), static_cast<unsigned>(where.line()), last.cut_short(), last.cut_short() == 1 ? "was" : "were",
      sched::printed_name(first), static_cast<unsigned long long>(first.id.load(base::relaxed)));
  try {
    if (sched::tell_handler(first, std::make_exception_ptr(scope_cancelled(text)))) return;
  } catch (...) {  // no memory for the handler's exception
  }
  std::fprintf(stderr, "%s\n", text);
}

}  // namespace

scope_core* open_group(runtime* in, failures policy, const std::stop_token& stop, std::source_location where) {
  task::record* self = waits::current_task();
  if (in == nullptr && self == nullptr)
    throw_usage("a task_group was made outside of a task: say in which runtime, task_group group(rt)", where);
  std::unique_ptr<group_core, drop_owner> s(
      new group_core(in == nullptr ? *self->owner : sched::core_of(*in), policy, where));
  s->cancel_on(stop);
  return s.release();
}

bool join_group(scope_core* s, std::source_location where) {
  group_core& g = as_group(s);
  if (g.scheduler().is_forked_child())
    throw_usage("this process was forked from the one that runs the tasks of this task_group; it cannot wait for them",
                where);
  if (!g.is_owner())
    throw_usage("a task_group is joined by the task or thread that made it; a child would wait for itself", where);
  group_core::round ended = g.end_round(where);
  if (std::exception_ptr failure = ended.failed().take()) std::rethrow_exception(failure);
  waits::check_cancelled();
  return ended.cut_short() == 0;
}

void leave_group(scope_core* s, bool unwinds) noexcept {
  group_core& g = as_group(s);
  if (g.scheduler().is_forked_child()) return;  // the children, and a holder of the lock, are in the parent process
  if (!g.is_owner())
    base::fail("a task_group is destroyed by another task or thread than the one that made it", g.where());
  const std::unique_ptr<scope_core, drop_owner> owned(s);
  const bool meant = unwinds || g.is_cancelled() || is_cancelled(waits::current_task());
  group_core::round last = g.end();
  bool failed = false;
  last.failed().each_lost([&](task::record& by, const std::exception_ptr& error) {
    failed = true;
    if (unwinds || is_cancelled(waits::current_task())) by.word.forgive();
    sched::report_unhandled(by, error);
  });
  if (!meant && !failed && last.cut_short() != 0) report_cut_short(last, g.where());
}

bool is_inside(const scope_core* s) noexcept {
  const sched::worker* w = sched::this_worker();
  return w != nullptr && &w->owner() == &s->scheduler();
}

}  // namespace weft::inline v1::detail
