// weft::with: the running task on another dispatcher for a while.
#include "sched/lane.hpp"
#include "sched/scheduler.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/dispatcher.hpp>

namespace weft::inline v1::detail {

visit::visit(const dispatcher& d, std::source_location where) {
  if (running_task() == nullptr)
    throw_usage("weft::with moves the running task, and this thread runs none; use runtime::spawn({.on = d}, f)",
                where);
  waits::check_may_suspend(0, where);
  waits::check_cancelled();
  sched::worker& w = *sched::this_worker();
  before_ = w.current()->dispatcher;
  to_ = w.owner().lane_of(d);
  if (to_ != nullptr) to_->add_reference();
  sched::scheduler::move_to(w, to_);
  if (!waits::cancel_pending(*sched::this_worker()->current())) return;
  leave();
  waits::throw_cancelled();
}

visit::~visit() { leave(); }

void visit::leave() noexcept {
  sched::worker* w = sched::this_worker();
  if (w == nullptr) return;  // in the child of a fork
  sched::scheduler::move_to(*w, before_);
  if (to_ != nullptr) to_->drop_reference();
}

}  // namespace weft::inline v1::detail
