// What a model test uses.
//
//   MODEL_TEST(two_adders_lose_nothing, .preemptions = 3) {
//     auto* n = new base::atomic<int>(0);           // every execution starts fresh; what is not deleted is a leak
//     for (int i = 0; i < 2; ++i) explore::thread([=] { n->fetch_add(1, base::relaxed); });
//     explore::join_all();
//     model_assert(n->load(base::relaxed) == 2);
//     delete n;
//   }
//
// The body runs many times, as thread 0. Threads may share only atomics, plain<T>, and what these protect: the search takes
// two executions for equal when their threads have read the same, so a raw shared variable that records the schedule
// ("who came first") must not be asserted on. Use plain<T> to assert exclusion: a violation is a data race.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "explore/atomic.hpp"

namespace explore {

struct options {
  int preemptions = 3;  // < 0: no bound
  int old_reads = 3;  // loads that do not return the newest store, per execution; < 0: no bound
  unsigned steps = 3000;  // more is a livelock
  int spurious = 0;  // futex waits that may return for no reason
  int weak_failures = 0;  // compare_exchange_weak that may fail for no reason
  int early_timeouts = 1;  // deadlines that pass while somebody could still run
  bool timeout_rescues = true;  // false: a sleep that only its deadline ends is a lost wake-up
  unsigned history = 6;  // stores of one object that a load chooses among
  const char* outcomes =
      nullptr;  // exactly these are seen, separated by spaces (litmus tests); also compared without pruning
  const char* fails = nullptr;  // the explorer must report a failure that contains this (tests of the explorer itself)
  bool once_more_without_pruning = false;
  std::uint64_t random = 0;  // > 0: too large for all schedules; so many random ones (half of them PCT) instead
  std::uint64_t max_executions = 20'000'000;
  double seconds = 0;  // > 0: stop then, which is no failure; of CPU time
};

struct report {
  bool ok = false;
  bool complete = false;
  bool out_of_time = false;
  std::uint64_t executions = 0;  // begun; `pruned` of them stopped at a known state
  std::uint64_t pruned = 0;
  std::uint64_t steps = 0;
  std::uint64_t states = 0;
  double seconds = 0;  // of CPU time
  std::string failure;
  std::string replay;
  std::set<std::string> outcomes;
};

report run(const char* name, const options&, void (*body)());

// --- inside a body
void spawn(void (*run)(void*), void* argument);
template <class F>
void thread(F f) {
  using closure = std::decay_t<F>;
  spawn(
      [](void* p) {
        auto* c = static_cast<closure*>(p);
        (*c)();
        delete c;
      },
      new closure(std::move(f)));
}
void join_all();
// The calling thread goes on when no other can (all have ended, sleep, or are here with a higher rank): a test begins in the
// middle of things, and what happened before is not explored together with what happens after.
void when_quiet(int rank = 0);
int choose(int n);  // any of 0 .. n-1
void outcome(const char* format, ...) __attribute__((format(printf, 1, 2)));  // one word that describes this execution
void name(const void* object, const char* text);  // for traces
void fence(memory_order, where = where::current()) noexcept;  // litmus tests; the code under test has fence_seq_cst
[[noreturn]] void failed_assert(const char* text, where = where::current());

// Pointer-valued atomics constructed in its scope are slots that are used again: a load that found an old task must happen
// before the store of the next one. Reported as "load buffering" otherwise; executions alone would not show it.
extern bool watching_slots;
class watch_slots {
 public:
  watch_slots() { watching_slots = true; }
  ~watch_slots() { watching_slots = false; }
  watch_slots(const watch_slots&) = delete;
  watch_slots& operator=(const watch_slots&) = delete;
};

// Allocations in its scope survive the execution (caches at namespace scope).
class outside {
 public:
  outside() : was_(std::exchange(exploring, false)) {}
  ~outside() { exploring = was_; }
  outside(const outside&) = delete;
  outside& operator=(const outside&) = delete;

 private:
  bool was_;
};

struct test {
  test(const char* name, void (*body)(), const options& o);
  const char* name;
  void (*body)();
  options how;
  test* next = nullptr;
};

}  // namespace explore

#define model_assert(...) ((__VA_ARGS__) ? void() : ::explore::failed_assert(#__VA_ARGS__))
#define MODEL_TEST(name_, ...)                                                          \
  static void name_();                                                                  \
  static ::explore::test name_##_test{#name_, &name_, ::explore::options{__VA_ARGS__}}; \
  static void name_()
