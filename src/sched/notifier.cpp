#include "sched/notifier.hpp"

#include "sched/worker.hpp"

namespace weft::inline v1::sched {

void notifier::notify(int preferred) noexcept {
  const int chosen = idle_.wake_one(preferred);
  if (chosen != idle_set::nobody) [[unlikely]]
    workers_[static_cast<std::size_t>(chosen)].wake();
}

bool notifier::notify_only(std::size_t worker) noexcept {
  if (!idle_.wake_exactly(static_cast<int>(worker))) return false;
  workers_[worker].wake();
  return true;
}

}  // namespace weft::inline v1::sched
