// weft::with: the running task on another dispatcher for a while.
#include "sched/lane.hpp"
#include "sched/scheduler.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/dispatcher.hpp>

namespace weft::inline v1::detail {
namespace {

// A task on another dispatcher does not park there by itself: it waits for a turn, and then runs. But its thread may
// block, and whoever asks what the task does wants to know where. So it is noted as a wait is.
constexpr waits::wait_kind dispatcher_kind{"a dispatcher", waits::kind_number::dispatcher};
constexpr waits::wait_kind blocking_kind{"a blocking call", waits::kind_number::blocking};
constexpr waits::wait_kind return_kind{"the return to its dispatcher", waits::kind_number::dispatcher};

}  // namespace

visit::visit(const dispatcher& d, std::source_location where) {
  if (running_task() == nullptr)
    throw_usage("weft::with moves the running task, and this thread runs none; use runtime::spawn({.on = d}, f)",
                where);
  waits::check_may_suspend(0, where);
  waits::check_cancelled();
  sched::worker& w = *sched::this_worker();
  before_ = w.current()->dispatcher();
  to_ = w.owner().lane_of(d);
  if (to_ != nullptr) to_->add_reference();
  const bool may_block = to_ != nullptr && to_ == w.owner().lane_of(dispatcher::io());
  waits::note_site(w, *w.current(), {may_block ? &blocking_kind : &dispatcher_kind, to_}, where);
  sched::scheduler::move_to(w, to_);
  // move_to() suspends, and a cancellation may have come meanwhile. The destructor of an object whose constructor
  // throws does not run, so the way back is taken here.
  sched::worker& now_on = *sched::this_worker();
  if (!waits::cancel_pending(now_on, *now_on.current())) return;
  leave();
  waits::throw_cancelled();
}

visit::~visit() { leave(); }

void visit::leave() noexcept {
  sched::worker* w = sched::this_worker();
  if (w == nullptr) return;  // in the child of a fork there are no workers
  w->current()->waits_for.store(&return_kind, base::relaxed);
  sched::scheduler::move_to(*w, before_);
  if (to_ != nullptr) to_->drop_reference();
}

}  // namespace weft::inline v1::detail
