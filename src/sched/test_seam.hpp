// Everything that the scheduler has for tests alone.
//
// - test_seam is the only friend of its classes. The product never defines it. Three test files do, and no two of them
//   are in one program. test/model/step_by_step.hpp runs a worker's functions one by one.
//   test/support/monitor_state.hpp sees whether the monitor sleeps. test/sched/turn_test.cpp leaves a turn without a
//   switch.
// - start_thread starts the threads of workers and of the monitor. A test may replace it before it makes a runtime: to
//   refuse the n-th thread, to leave out the monitor, or to start none at all.
#pragma once

#include <cstdint>
#include <functional>

#include "base/thread.hpp"

namespace weft::inline v1::sched {

struct test_seam;

enum class thread_role : std::uint8_t { worker, monitor };
// Throws std::system_error. The product's own function is in process.cpp.
using thread_starter = base::thread (*)(thread_role role, std::function<void()> body);
extern thread_starter start_thread;

}  // namespace weft::inline v1::sched
