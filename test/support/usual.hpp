// What nearly every test of tasks needs: the usual headers, their names without `support::`, and the usual frame of a test.
//
//     using namespace support::usual;
//     TEST(Join, returns_the_value) { at_worker_counts_in_a_task([] { EXPECT_EQ(weft::spawn([] { return 1; }).join(), 1); }); }
#pragma once

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <weft/weft.hpp>

#include "base/atomic.hpp"
#include "support/parked.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "support/worker_counts.hpp"

namespace support {

// Runs body() as a task at each worker count, in a runtime of exactly so many workers, under a watchdog that says what hangs.
template <class Body>
void at_worker_counts_in_a_task(std::string what, Body body) {
  const watchdog guard(std::chrono::seconds(110), std::move(what));
  at_worker_counts([&](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run(body);
  });
}
template <class Body>
void at_worker_counts_in_a_task(Body body) {
  at_worker_counts_in_a_task("the test", std::move(body));
}

// What a task throws that fails on purpose.
struct failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace usual {

using namespace std::chrono_literals;
using support::at_worker_counts;
using support::at_worker_counts_in_a_task;
using support::failure;
using support::is_parked;
using support::parked_tasks;
using support::scaled;
using support::throws_cancelled;
using support::until;
using support::wait_for_ever;
using support::watched_runtime;
namespace base = weft::base;

}  // namespace usual
}  // namespace support
