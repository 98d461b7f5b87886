// Children of scopes and task groups, for their model tests.
#pragma once

#include <exception>

#include "event.hpp"
#include "explore/explore.hpp"
#include "sched/scheduler.hpp"
#include "scope/core.hpp"

namespace model {

[[nodiscard]] inline bool is_cancelled(const weft::task::record& t) {
  return (t.word.peek() & weft::task::state_word::cancel_requested) != 0;
}

// A child before its first step, and its place in the scope.
struct offspring : weft::sched::model_task {
  offspring() : model_task(false) {
    word.reset_for_spawn(false);
    place.task = this;
  }
  // What the scheduler does at the end of a task; the last that is heard of it.
  void end(weft::task::phase how = weft::task::phase::done) {
    (void)word.finish_unwanted(how);
    place.of->ended(place);
  }
  // Throws: told to the scope while it still runs.
  void fail() {
    place.of->failed(place, std::make_exception_ptr(1));
    end();
  }
  // Waits until it is cancelled.
  void wait_for_ever(event& never) {
    weft::sched::worker::run(*this, [&] {
      weft::waits::node n;
      model_assert(weft::waits::fiber_wait(never, n, {}) == weft::waits::outcome::cancelled);
      end(weft::task::phase::cancelled);
    });
  }
  weft::detail::kin place;
};

}  // namespace model
