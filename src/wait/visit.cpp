// weft::with: the running task on another dispatcher for a while.
#include "sched/lane.hpp"
#include "sched/scheduler.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/dispatcher.hpp>

namespace weft::inline v1::detail {

visit::visit(const dispatcher& d, std::source_location where) {
  if (running_task() == nullptr) throw_usage("weft::with moves the running task; there is none on this thread");
  wait::check_may_suspend(0, where);
  sched::worker& w = *sched::this_worker();
  before_ = w.current()->dispatcher;
  to_ = w.owner().lane_of(d);
  if (to_ != nullptr) to_->add_reference();
  sched::scheduler::move_to(w, to_);
}

visit::~visit() {
  sched::worker* w = sched::this_worker();
  if (w == nullptr) return;  // in the child of a fork
  sched::scheduler::move_to(*w, before_);
  if (to_ != nullptr) to_->drop_reference();
}

}  // namespace weft::inline v1::detail
