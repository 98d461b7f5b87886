// What the explorer must report, and must not: races, lost wake-ups, livelocks, leaks, late accesses.
#include <stdexcept>

#include "explore/explore.hpp"

using namespace weft::base;
using explore::join_all;
using explore::outcome;
using explore::thread;

static atomic<int> made_before{40};
static plain<int> plain_before{2};

MODEL_TEST(objects_from_before_start_fresh, .outcomes = "42") {
  thread([] { made_before.fetch_add(1, relaxed); });
  thread([] { made_before.fetch_add(1, relaxed); });
  join_all();
  plain_before = 2;
  outcome("%d", made_before.load(relaxed));
}

// ---- races

MODEL_TEST(race_of_two_writes, .fails = "data race") {
  plain<int> x{0};
  for (int i = 0; i < 2; ++i) thread([&] { x = 1; });
  join_all();
}
MODEL_TEST(race_through_relaxed_flag, .fails = "data race") {
  plain<int> x{0};
  atomic<bool> ready{false};
  thread([&] {
    x = 1;
    ready.store(true, relaxed);
  });
  thread([&] {
    if (ready.load(acquire)) (void)x.get();
  });
  join_all();
}
MODEL_TEST(no_race_through_release_acquire) {
  plain<int> x{0};
  atomic<bool> ready{false};
  thread([&] {
    x = 1;
    ready.store(true, release);
  });
  thread([&] {
    if (ready.load(acquire)) model_assert(x == 1);
  });
  join_all();
}
MODEL_TEST(atomic_published_relaxed_races_with_its_construction, .fails = "construction") {
  atomic<atomic<int>*> p{nullptr};
  thread([&] { p.store(new atomic<int>(7), relaxed); });
  thread([&] {
    if (auto* a = p.load(relaxed)) (void)a->load(relaxed);
  });
  join_all();
}
MODEL_TEST(reference_count_needs_acquire_on_the_last_drop, .fails = "unordered with its use") {
  struct counted {
    atomic<int> n{2};
    atomic<int> x{0};
  };
  auto* c = new counted;
  for (int i = 0; i < 2; ++i)
    thread([=] {
      c->x.fetch_add(1, relaxed);
      if (c->n.fetch_sub(1, release) == 1) delete c;
    });
  join_all();
}
MODEL_TEST(reference_count_done_right) {
  struct counted {
    atomic<int> n{2};
    atomic<int> x{0};
  };
  auto* c = new counted;
  for (int i = 0; i < 2; ++i)
    thread([=] {
      c->x.fetch_add(1, relaxed);
      if (c->n.fetch_sub(1, acq_rel) == 1) delete c;
    });
  join_all();
}

// ---- life of objects

MODEL_TEST(use_after_free, .fails = "after its end") {
  atomic<int>* volatile a = new atomic<int>(1);  // volatile: the compiler sees it too
  delete a;
  (void)a->load(relaxed);
}
MODEL_TEST(double_free, .fails = "double free") {
  char* volatile a = new char;
  delete a;
  delete a;
}
MODEL_TEST(leak, .fails = "leak") { (void)new atomic<int>(1); }
MODEL_TEST(leak_in_some_schedule, .fails = "leak") {
  atomic<int*> slot{nullptr};
  for (int i = 0; i < 2; ++i)
    thread([&] {
      if (slot.load(relaxed) == nullptr) delete slot.exchange(new int(1), acq_rel);
    });
  join_all();
  int* last = slot.load(relaxed);
  slot.store(nullptr, relaxed);
  if (last != nullptr && slot.load(relaxed) == nullptr && explore::choose(2) == 0) delete last;
}

// ---- sleeping and spinning

MODEL_TEST(event_wakes, .once_more_without_pruning = true) {
  atomic<std::uint32_t> f{0};
  plain<int> x{0};
  thread([&] {
    while (f.load(acquire) == 0) futex_wait(f, 0);
    model_assert(x == 1);
  });
  thread([&] {
    x = 1;
    f.store(1, release);
    futex_wake(&f, 1);
  });
  join_all();
}
MODEL_TEST(wake_before_store_is_lost, .fails = "deadlock") {
  atomic<std::uint32_t> f{0};
  thread([&] {
    while (f.load(acquire) == 0) futex_wait(f, 0);
  });
  thread([&] {
    futex_wake(&f, 1);
    f.store(1, release);
  });
  join_all();
}
MODEL_TEST(one_wake_for_two_sleepers_is_too_few, .fails = "deadlock") {
  atomic<std::uint32_t> f{0};
  for (int i = 0; i < 2; ++i)
    thread([&] {
      while (f.load(acquire) == 0) futex_wait(f, 0);
    });
  thread([&] {
    f.store(1, release);
    futex_wake(&f, 1);
  });
  join_all();
}
MODEL_TEST(flag_read_before_sleeping_needs_fences, .fails = "deadlock") {
  atomic<std::uint32_t> f{0};
  atomic<int> sleepers{0};  // Dekker without fences: the waker saves the call when it sees nobody
  thread([&] {
    sleepers.store(1, relaxed);
    if (f.load(relaxed) == 0) futex_wait(f, 0);
  });
  thread([&] {
    f.store(1, relaxed);
    if (sleepers.load(relaxed) != 0) futex_wake(&f, 1);
  });
  join_all();
}
MODEL_TEST(flag_read_before_sleeping_with_fences) {
  atomic<std::uint32_t> f{0};
  atomic<int> sleepers{0};
  thread([&] {
    sleepers.store(1, relaxed);
    fence_seq_cst();
    if (f.load(relaxed) == 0) futex_wait(f, 0);
  });
  thread([&] {
    f.store(1, relaxed);
    fence_seq_cst();
    if (sleepers.load(relaxed) != 0) futex_wake(&f, 1);
  });
  join_all();
}
MODEL_TEST(spurious_return_is_found, .spurious = 1, .fails = "assertion") {
  atomic<std::uint32_t> f{0};
  thread([&] {
    futex_wait(f, 0);
    model_assert(f.load(acquire) == 1);
  });
  thread([&] {
    f.store(1, release);
    futex_wake(&f, 1);
  });
  join_all();
}
MODEL_TEST(deadline_may_pass_or_not, .outcomes = "0 1") {
  atomic<std::uint32_t> f{0};
  unsigned seen = 9;
  thread([&] {
    futex_wait(f, 0, 1000);
    seen = f.load(acquire);
  });
  thread([&] {
    f.store(1, release);
    futex_wake(&f, 1);
  });
  join_all();
  outcome("%u", seen);
}
MODEL_TEST(deadline_of_the_only_thread) {
  atomic<std::uint32_t> f{0};
  thread([&] { futex_wait(f, 0, 1000); });
  join_all();
}
MODEL_TEST(lost_wakeup_hidden_by_a_deadline, .timeout_rescues = false, .fails = "deadlock") {
  atomic<std::uint32_t> f{0};
  thread([&] { futex_wait(f, 0, 1000); });
  join_all();
}
MODEL_TEST(spin_waits_for_the_other) {
  atomic<int> f{0};
  for (int i = 0; i < 2; ++i)
    thread([&] {
      while (f.load(acquire) == 0) cpu_relax();
    });
  thread([&] { f.store(1, release); });
  join_all();
}
MODEL_TEST(spin_for_nothing_is_a_livelock, .fails = "livelock") {
  atomic<int> f{0};
  thread([&] {
    while (f.load(acquire) == 0) cpu_relax();
  });
  join_all();
}
MODEL_TEST(spin_lock, .once_more_without_pruning = true) {
  atomic<int> l{0};
  plain<int> x{0};
  for (int i = 0; i < 2; ++i)
    thread([&] {
      while (l.exchange(1, acquire) != 0) cpu_relax();
      x = x + 1;
      l.store(0, release);
    });
  join_all();
  model_assert(x == 2);
}

// ---- the rest of the machinery

MODEL_TEST(weak_compare_exchange_may_fail, .weak_failures = 1, .outcomes = "0 1") {
  atomic<int> x{0};
  int zero = 0;
  outcome("%d", x.compare_exchange_weak(zero, 1, relaxed, relaxed) ? 1 : 0);
}
MODEL_TEST(pointer_arithmetic) {
  int a[4] = {};
  atomic<int*> p{a};
  model_assert(p.fetch_add(2, relaxed) == a && p.fetch_sub(1, relaxed) == a + 2 && p.load(relaxed) == a + 1);
  atomic<std::uint8_t> b{250};
  model_assert(b.fetch_add(10, relaxed) == 250 && b.load(relaxed) == 4);
  model_assert(b.fetch_or(3, relaxed) == 4 && b.fetch_and(6, relaxed) == 7 && b.fetch_xor(2, relaxed) == 6 &&
               b.exchange(9, relaxed) == 4 && b.load(relaxed) == 9);
}
MODEL_TEST(exceptions_belong_to_their_thread) {
  atomic<int> x{0};
  for (int i = 0; i < 2; ++i)
    thread([&, i] {
      try {
        x.fetch_add(1, relaxed);
        throw i;
      } catch (int caught) {
        x.fetch_add(1, relaxed);  // others throw and catch meanwhile
        try {
          throw;
        } catch (int again) {
          model_assert(again == i && caught == i);
        }
      }
    });
  join_all();
}
MODEL_TEST(choice_of_the_test_itself, .outcomes = "0 1 2") { outcome("%d", explore::choose(3)); }
MODEL_TEST(random_schedules_find_it_too, .fails = "data race", .random = 200) {
  plain<int> x{0};
  atomic<int> a{0};
  for (int i = 0; i < 2; ++i)
    thread([&] {
      if (a.fetch_add(1, relaxed) == 0)
        a.fetch_add(2, relaxed);
      else
        x = 1;
      if (a.load(relaxed) > 2) x = 2;
    });
  join_all();
}
