#include <weft/dispatcher.hpp>

#include <stdexcept>

#include "sched/lane.hpp"
#include "sched/scheduler.hpp"

namespace weft::inline v1 {

dispatcher dispatcher::io() noexcept { return dispatcher(kind::io); }
dispatcher dispatcher::unconfined() noexcept { return dispatcher(kind::unconfined); }

dispatcher dispatcher::custom(std::size_t tasks) {
  if (tasks == 0) throw std::invalid_argument("weft: dispatcher::custom(0): a dispatcher that runs no task");
  return dispatcher(kind::own, new sched::lane(tasks));
}

dispatcher::dispatcher(const dispatcher& other) noexcept : what_(other.what_), lane_(other.lane_) {
  if (lane_ != nullptr) lane_->add_reference();
}

dispatcher::~dispatcher() {
  if (lane_ != nullptr) lane_->drop_reference();
}

namespace sched {

lane* scheduler::lane_of(const dispatcher& d) noexcept { return d.what_ == dispatcher::kind::io ? &io_ : d.lane_; }

dispatcher scheduler::lookups() noexcept {
  lookups_.add_reference();  // the scheduler keeps the first one, so the lane is never freed by itself
  return dispatcher(dispatcher::kind::own, &lookups_);
}

void scheduler::assign(record& t, const dispatcher& d) noexcept {
  if (d.what_ == dispatcher::kind::unconfined) t.extras |= task::starts_at_once;
  t.dispatcher() = lane_of(d);
  if (t.dispatcher() == nullptr) return;
  t.dispatcher()->add_reference();
  t.extras |= task::on_lane;
}

}  // namespace sched

}  // namespace weft::inline v1
