#include "io/fd_record.hpp"
#include "sched/scheduler.hpp"

namespace weft::inline v1::io {
namespace {

// Whether the running task's runtime is told of edges in this direction.
bool is_watched_by_this_runtime(const fd_record& r, side s) noexcept {
  const sched::driver* d = sched::this_worker()->owner().polling().polled();
  return d != nullptr && r.is_watched_by(*d, s);
}

}  // namespace

bool readiness::try_complete() noexcept {
  return is_known_ready_ || direction::is_worth_trying(record_->in(side_).look());
}

// A task of another runtime may have made its own runtime watch the descriptor since this one asked, and the alarm may
// have rung that was set for this wait. Then this wait ends at once, and the operation begins again (transfer.hpp).
bool readiness::publish(waits::node& n) noexcept {
  if (!is_watched_by_this_runtime(*record_, side_)) return false;
  if (node_.deadline != base::never_ns) {
    if (!record_->is_alarm_set_for(side_, node_.deadline)) return false;
    node_.mark = direction::limited;
  }
  record_->in(side_).publish(n, record_->set().waiting());
  return true;
}

void readiness::unpublish(waits::node& n) noexcept { record_->in(side_).unpublish(n); }

base::lock* readiness::own_lock() noexcept { return &record_->in(side_).own_lock(); }

}  // namespace weft::inline v1::io
