// The part of scope.hpp that is not a template.
#include <memory>

#include "scope/core.hpp"
#include <weft/scope_errors.hpp>

namespace weft::inline v1::detail {
scope_core* open_scope(failures policy, const std::stop_token& stop, std::source_location where) {
  task::record* self = waits::current_task();
  if (self == nullptr)
    throw_usage("with_scope was called outside of a task: start with weft::run, or runtime::run from an outside thread",
                where);
  auto* s = new scope_core(*self->owner, self, policy, where);
  s->open();
  s->cancel_on(stop);
  return s;
}

scope_end close_scope(scope_core* s, body_end how) {
  const std::unique_ptr<scope_core, drop_owner> owned(s);
  const bool was_cancelled = s->is_cancelled();
  if (how == body_end::cancelled) s->cancel();
  s->drain();
  s->leave();
  if (std::exception_ptr failure = s->take_failure()) std::rethrow_exception(failure);
  waits::check_cancelled();
  if (how == body_end::returned) return s->children_timed_out() ? scope_end::children_timed_out : scope_end::returned;
  // A cancellation has unwound the body. It continues to unwind the task if this scope had not been cancelled when the
  // body ended, or if the task's own cancellation or that of an outer scope has been requested too.
  if (!was_cancelled || (s->body()->word.peek() & task::state_word::cancel_requested) != 0) waits::throw_cancelled();
  return s->timed_out() ? scope_end::timed_out : scope_end::cut_short;
}

void join_scope(scope_core* s, std::source_location where) {
  if (waits::current_task() != s->body())
    throw_usage("scope::join was called by another task than the one that runs the body: a child would wait for itself",
                where);
  s->drain(scope_core::afterwards::open, where);
  waits::check_cancelled();
}

bool fail_scope(scope_core* s, std::exception_ptr why) noexcept { return s->body_failed(std::move(why)); }
void cancel_scope(scope_core* s) noexcept { s->cancel(); }
void cancel_scope_at(scope_core* s, std::chrono::steady_clock::time_point when) {
  s->cancel_at(when.time_since_epoch().count());
}
bool is_scope_cancelled(const scope_core* s) noexcept { return s->is_cancelled(); }
sched::scheduler* scheduler_of(const scope_core* s) noexcept { return &s->scheduler(); }
bool admit(scope_core* s, kin& child) { return s->admit(child); }
bool reserve(scope_core* s) noexcept { return s->reserve(); }
void release(scope_core* s) noexcept { s->release(); }
void add_reference(scope_core* s) noexcept { s->add_reference(); }
void drop_reference(scope_core* s) noexcept { s->drop_reference(); }
void throw_scope_closed() { throw scope_closed(); }
void throw_scope_cancelled() { throw scope_cancelled(); }

}  // namespace weft::inline v1::detail
