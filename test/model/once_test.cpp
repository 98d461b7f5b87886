// call_once (src/sync/once): whoever does it against those who wait for it, come later, or are cancelled.
// sources: sync/once.cpp sync/mutex.cpp sync/caller.cpp wait/select.cpp time/timer.cpp time/wheel.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/thread_waiter.cpp wait/join.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// It is done once, and whoever returns from call_once sees it done (a data race here). If it is left undone, by an exception or a
// cancellation, the next one does it, and nobody waits for ever (a deadlock here).
#include <weft/once.hpp>

#include <optional>

#include "sync.hpp"

using namespace model;

namespace {

struct failure {};

struct done_once {
  weft::once_flag flag;
  base::plain<int> done{0};
  int failures = 0;  // those to come; under the flag

  void call() {
    weft::call_once(flag, [&] {
      if (failures-- > 0) throw failure();
      done = done + 1;
    });
    model_assert(done == 1);
  }
};

}  // namespace

// req: BZ-13
MODEL_TEST(once_two_tasks_and_one_that_comes_later) {
  done_once it;
  fiber a([&] { it.call(); });
  fiber b([&] {
    it.call();
    it.call();
  });
  join_all();
  model_assert(it.flag.is_done());
}

// req: BZ-13
MODEL_TEST(once_a_task_and_a_thread, .preemptions = -1) {
  done_once it;
  fiber a([&] { it.call(); });
  thread([&] { it.call(); });
  join_all();
}

// req: BZ-13
MODEL_TEST(once_the_first_one_throws_and_the_next_one_does_it, .old_reads = 1) {
  done_once it;
  it.failures = 1;
  base::atomic<int> threw{0};
  const auto body = [&] {
    try {
      it.call();
    } catch (failure) {
      threw.fetch_add(1, base::relaxed);
    }
  };
  fiber a(body);
  fiber b(body);
  fiber c(body);
  join_all();
  model_assert(threw.load(base::relaxed) == 1 && it.flag.is_done() && it.done == 1);
}

// The one that does it has a cancellation point inside: it leaves it undone, or not.
// req: BZ-13 CC-10 LS-P3
MODEL_TEST(once_the_first_one_is_cancelled_while_it_does_it) {
  done_once it;
  fiber leaves([&] {
    weft::call_once(it.flag, [&] {
      weft::waits::check_cancelled();
      it.done = it.done + 1;
    });
  });
  fiber stays([&] { it.call(); });
  thread([&] { leaves.cancel(); });
  join_all();
  model_assert(it.flag.is_done() && it.done == 1);
}

// req: BZ-13 CC-10 LS-P3
MODEL_TEST(once_cancel_of_one_that_waits, .old_reads = 0) {
  done_once it;
  fiber leaves([&] { it.call(); });
  fiber a([&] { it.call(); });
  fiber b([&] { it.call(); });
  thread([&] { leaves.cancel(); });
  join_all();
  model_assert(it.flag.is_done() && it.done == 1 && !a.cancelled && !b.cancelled);
}

// The one that is woken after a failure is cancelled: the other one, who waits behind it, does it.
// req: BZ-13 CC-10 LS-P3
MODEL_TEST(once_a_failure_against_the_cancel_of_the_next) {
  done_once it;
  std::optional<fiber> leaves;
  std::optional<fiber> stays;
  try {
    weft::call_once(it.flag, [&] {
      leaves.emplace([&] { it.call(); });
      explore::when_quiet();
      stays.emplace([&] { it.call(); });
      explore::when_quiet();  // both wait
      thread([&] { leaves->cancel(); });
      throw failure();
    });
  } catch (failure) {}
  join_all();
  model_assert(it.flag.is_done() && it.done == 1 && !stays->cancelled);
}
