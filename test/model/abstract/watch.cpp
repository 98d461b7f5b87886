// No watch: for model tests without timers and without quiet enqueues. watch_test.cpp explores the real one (sched/watch.cpp). A
// test file asks for it with `// abstract watch`.
#include "sched/scheduler.hpp"

namespace weft::inline v1::sched {

std::size_t scheduler::fire_timers(base::time_ns, worker&) noexcept { return 0; }
bool scheduler::timer_due(base::time_ns) const noexcept { return false; }
base::time_ns scheduler::watch_from(worker&) noexcept { return base::never_ns; }
bool scheduler::stop_watching(worker&) noexcept { return false; }
void scheduler::hand_on_watch() noexcept {}
void scheduler::wake_for_timers() noexcept {}

}  // namespace weft::inline v1::sched
