// No watch: for model tests without timers and without quiet enqueues. watch_test.cpp explores the real one (sched/watch.cpp). A
// test file asks for it with `// abstract watch`.
#include "sched/watch.hpp"

namespace weft::inline v1::sched {

std::size_t watch::fire(base::time_ns, intake&) noexcept { return 0; }
bool watch::is_due(base::time_ns) const noexcept { return false; }
base::time_ns watch::begin(worker&) noexcept { return base::never_ns; }
bool watch::end(worker&) noexcept { return false; }
void watch::hand_on() noexcept {}
void watch::wake_a_sleeper() noexcept {}

}  // namespace weft::inline v1::sched
