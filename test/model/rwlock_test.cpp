// Readers and writers: against each other, cancel and time-out (src/sync/shared_mutex).
// sources: sync/shared_mutex.cpp sync/caller.cpp wait/select.cpp time/timer.cpp time/wheel.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/thread_waiter.cpp wait/join.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// sync.R1. A writer is alone; readers see what writers did, and the next writer comes after the readers (a data race here).
// sync.R3. Nobody waits for what is free, whoever leaves (a deadlock here).
// sync.R4. Who takes it next may destroy it (use after its end here).
#include "sync/shared_mutex.hpp"

#include "sync.hpp"

using namespace model;
using locks::access;

namespace {

struct guarded {
  locks::shared_mutex_core mutex;
  base::plain<int> value{0};

  void write() {
    locks::lock(mutex, access::write, {});
    value = value + 1;
    mutex.release(access::write);
  }
  int read() {
    locks::lock(mutex, access::read, {});
    const int v = value;
    mutex.release(access::read);
    return v;
  }
  void expect(int n) {
    model_assert(mutex.is_idle());
    model_assert(value == n);
  }
};

}  // namespace

// req: BZ-13
MODEL_TEST(rwlock_two_writers) {
  guarded g;
  fiber a([&] { g.write(); });
  fiber b([&] { g.write(); });
  join_all();
  g.expect(2);
}

// req: BZ-13
MODEL_TEST(rwlock_two_readers_and_a_writer, .old_reads = 1) {
  guarded g;
  fiber a([&] { model_assert(g.read() <= 1); });
  fiber b([&] { model_assert(g.read() <= 1); });
  fiber w([&] { g.write(); });
  join_all();
  g.expect(1);
}

// req: BZ-13
MODEL_TEST(rwlock_two_writers_and_a_reader, .old_reads = 1) {
  guarded g;
  fiber a([&] { g.write(); });
  fiber b([&] { g.write(); });
  fiber r([&] { model_assert(g.read() <= 2); });
  join_all();
  g.expect(2);
}

// req: BZ-13 CC-10 LS-P3
MODEL_TEST(rwlock_cancel_of_a_writer_at_every_step, .old_reads = 1) {
  guarded g;
  locks::lock(g.mutex, access::read, {});
  fiber w([&] { g.write(); });
  thread([&] { w.cancel(); });
  g.mutex.release(access::read);
  join_all();
  g.expect(w.cancelled ? 0 : 1);
}

// The reader that holds it does not unlock before the other reader is in. Only the writer that leaves can let that
// reader in.
MODEL_TEST(rwlock_the_writer_that_leaves_lets_the_next_reader_in) {
  guarded g;
  locks::lock(g.mutex, access::read, {});
  fiber w([&] { g.write(); });
  explore::when_quiet();
  bool read = false;
  fiber r([&] {
    (void)g.read();
    read = true;
  });
  thread([&] { w.cancel(); });
  explore::when_quiet();
  model_assert(w.cancelled && read);
  g.mutex.release(access::read);
  join_all();
  g.expect(0);
}

// req: BZ-13 CC-10 LS-P3
MODEL_TEST(rwlock_cancel_of_a_reader, .old_reads = 1) {
  guarded g;
  locks::lock(g.mutex, access::write, {});
  fiber r([&] { (void)g.read(); });
  fiber w([&] { g.write(); });
  thread([&] { r.cancel(); });
  g.mutex.release(access::write);
  join_all();
  g.expect(1);
}

// req: BZ-13 BZ-11 LS-P3
MODEL_TEST(rwlock_time_out_of_a_writer) {
  guarded g;
  weft::timing::wheel wheel;
  bool got = false;
  fiber held([&] { (void)g.read(); });
  fiber late(
      [&] {
        got = locks::lock_until(g.mutex, access::write, at(begin + 3 * tick), {});
        if (!got) return;
        g.value = g.value + 1;
        g.mutex.release(access::write);
      },
      &wheel);
  thread([&] { fire(wheel, begin + 5 * tick); });
  join_all();
  g.expect(got ? 1 : 0);
}

// req: BZ-13
MODEL_TEST(rwlock_the_last_one_destroys) {
  struct shared {
    locks::shared_mutex_core mutex;
    base::plain<int> left{2};
  };
  auto* s = new shared;
  const auto leave = [s] {
    locks::lock(s->mutex, access::write, {});
    s->left = s->left - 1;
    const bool last = s->left == 0;
    s->mutex.release(access::write);
    if (last) delete s;
  };
  fiber a(leave);
  fiber b(leave);
  join_all();
}

// A writer that leaves between two readers: who writes then comes after both of them, though the first one's unlock is not the last.
// req: BZ-13 CC-10
MODEL_TEST(rwlock_a_writer_that_left_hides_no_reader) {
  guarded g;
  locks::lock(g.mutex, access::read, {});
  locks::lock(g.mutex, access::read, {});
  fiber leaves([&] { g.write(); });
  explore::when_quiet();
  thread([&] {
    (void)g.value.get();
    g.mutex.release(access::read);
  });
  thread([&] { leaves.cancel(); });
  g.mutex.release(access::read);
  if (g.mutex.try_take(access::write, 8)) {
    g.value = g.value + 1;
    g.mutex.release(access::write);
  }
  join_all();
  model_assert(g.mutex.is_idle());
}
