// base::lock (src/base/lock.hpp).
// sources: base/lock.cpp
//
// base.L1. Mutual exclusion, and release publishes to the next holder: a plain counter under the lock is exact and race-free.
// base.L1. No lost wake: whoever sleeps behind a holder is woken (a deadlock otherwise).
// base.L2. The lock may be destroyed right after its release: release() touches the word once.
// base.L3. It may be released by another thread than the one that took it.
#include "base/lock.hpp"

#include "explore/explore.hpp"

using namespace weft::base;
using explore::join_all;
using explore::thread;

namespace {
struct guarded {
  lock l;
  plain<int> n{0};
  void add() {
    lock_guard g(l);
    n = n + 1;
  }
};
}  // namespace

MODEL_TEST(lock_two_threads_twice, .preemptions = 4) {
  guarded v;
  for (int i = 0; i < 2; ++i)
    thread([&] {
      v.add();
      v.add();
    });
  join_all();
  model_assert(v.n == 4);
}

MODEL_TEST(lock_three_threads, .preemptions = 3) {
  guarded v;
  for (int i = 0; i < 3; ++i) thread([&] { v.add(); });
  join_all();
  model_assert(v.n == 3);
}

MODEL_TEST(lock_two_threads_no_bound, .preemptions = -1, .spurious = 1) {
  guarded v;
  for (int i = 0; i < 2; ++i) thread([&] { v.add(); });
  join_all();
  model_assert(v.n == 2);
}

MODEL_TEST(lock_try_acquire, .preemptions = 4) {
  guarded v;
  int got = 0;
  thread([&] { v.add(); });
  thread([&] {
    if (!v.l.try_acquire()) return;
    v.n = v.n + 1;
    got = 1;
    v.l.release();
  });
  thread([&] { v.add(); });
  join_all();
  model_assert(v.n == 2 + got);
}

MODEL_TEST(lock_destroyed_right_after_release, .preemptions = 3) {
  struct counted {
    lock l;
    plain<int> users{3};
  };
  auto* c = new counted;
  for (int i = 0; i < 3; ++i)
    thread([=] {
      c->l.acquire();
      const bool last = c->users == 1;
      c->users = c->users - 1;
      c->l.release();
      if (last) delete c;
    });
  join_all();
}

MODEL_TEST(lock_released_by_another_thread, .preemptions = 4) {
  guarded v;
  atomic<int> handed{0};
  thread([&] {
    v.l.acquire();
    v.n = v.n + 1;
    handed.store(1, release);
  });
  thread([&] {
    while (handed.load(acquire) == 0) cpu_relax();
    v.n = v.n + 1;
    v.l.release();
  });
  thread([&] { v.add(); });
  join_all();
  model_assert(v.n == 3);
}
