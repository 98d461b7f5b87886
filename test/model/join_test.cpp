// The end of a task: join, finish, detach, recycle (src/wait/join.*, handle.cpp, thread_waiter.cpp, sched/reference.cpp,
// task/state.hpp).
// sources: wait/fiber_wait.cpp wait/stop_bridge.cpp wait/permit.cpp wait/thread_waiter.cpp wait/join.cpp wait/handle.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// wait.J1. A joiner is woken exactly once, when the result is complete.
// wait.J2. The record is not recycled while a joiner or the finisher touches it; it is recycled once (else: leak, double free).
// task.S5. A result is kept by the handle or disposed of, once.
#include "explore/explore.hpp"
#include "sched/scheduler.hpp"
#include "wait/join.hpp"
#include "weft/join_handle.hpp"

namespace base = weft::base;
namespace task = weft::task;
namespace waits = weft::waits;
using explore::join_all;
using explore::thread;
using weft::sched::model_task;
using weft::sched::worker;

namespace {

struct body {
  base::plain<int> result{0};
  base::plain<int> disposed{0};
  base::plain<int> used{0};  // by the holder of the handle
};

const weft::detail::operations body_operations = {nullptr, nullptr, nullptr,
                                                  [](void* b) noexcept -> std::exception_ptr {
                                                    auto* p = static_cast<body*>(b);
                                                    p->disposed = p->disposed + 1;
                                                    model_assert(p->result == 42);
                                                    p->used = 2;
                                                    return nullptr;
                                                  }};

model_task* make(body& b) {
  auto* t = new model_task(true);
  t->ops = &body_operations;
  t->body = &b;
  return t;
}

void finish(model_task* t, body& b) {
  b.result = 42;
  weft::sched::the_scheduler().finish(t, task::phase::done);
}

}  // namespace

MODEL_TEST(join_by_a_task, .preemptions = -1) {
  body b;
  model_task* t = make(b);
  model_task joiner(false);
  thread([&] { finish(t, b); });
  thread([&] {
    worker::run(joiner, [&] {
      weft::detail::wait_for(t, {});
      model_assert(weft::detail::how_it_ended(t) == weft::detail::ended::done);
      model_assert(b.result == 42);
      weft::detail::drop_handle(t);
    });
  });
  join_all();
  model_assert(b.disposed == 1);
}

MODEL_TEST(join_by_an_outside_thread, .preemptions = -1) {
  body b;
  model_task* t = make(b);
  thread([&] { finish(t, b); });
  thread([&] {
    weft::detail::wait_for(t, {});
    model_assert(weft::detail::how_it_ended(t) == weft::detail::ended::done);
    model_assert(b.result == 42);
    weft::detail::drop_handle(t);
  });
  join_all();
  model_assert(b.disposed == 1);
}

MODEL_TEST(join_by_two, .preemptions = 3) {
  body b;
  model_task* t = make(b);
  weft::detail::add_reference(t);
  model_task joiner(false);
  thread([&] { finish(t, b); });
  thread([&] {
    worker::run(joiner, [&] {
      weft::detail::wait_for(t, {});
      model_assert(b.result == 42);
      weft::detail::drop_reference(t);
    });
  });
  thread([&] {
    weft::detail::wait_for(t, {});
    model_assert(b.result == 42);
    weft::detail::drop_handle(t);
  });
  join_all();
  model_assert(b.disposed == 1);
}

MODEL_TEST(join_detach_against_finish, .preemptions = -1) {
  body b;
  model_task* t = make(b);
  thread([&] { finish(t, b); });
  thread([&] {
    b.used = 1;
    weft::detail::drop_handle(t);
  });
  join_all();
  model_assert(b.disposed == 1 && b.used == 2);
}

MODEL_TEST(join_against_cancel_of_the_joiner, .preemptions = 3) {
  body b;
  model_task* t = make(b);
  model_task joiner(false);
  thread([&] { finish(t, b); });
  thread([&] {
    worker::run(joiner, [&] {
      try {
        weft::detail::wait_for(t, {});
        model_assert(b.result == 42);
      } catch (const weft::cancelled&) {}
      weft::detail::drop_handle(t);
    });
  });
  thread([&] { waits::cancel(joiner); });
  join_all();
  model_assert(b.disposed == 1);
}

MODEL_TEST(join_reference_against_detach_and_finish, .preemptions = 4) {
  body b;
  model_task* t = make(b);
  weft::detail::add_reference(t);
  thread([&] { finish(t, b); });
  thread([&] { weft::detail::drop_handle(t); });
  thread([&] {
    weft::detail::request_cancel(t);
    weft::detail::drop_reference(t);
  });
  join_all();
  model_assert(b.disposed == 1);
}
