// The bed (src/sched/bed.hpp): where a worker sleeps.
// sources: sched/bed.cpp
//
// A wake before the sleep makes it return at once; a wake during it ends it; what the waker did before is seen after it.
#include "sched/bed.hpp"

#include "explore/explore.hpp"
#include "sched/driver.hpp"

namespace base = weft::base;
using explore::join_all;
using explore::thread;

MODEL_TEST(bed_wake_ends_the_sleep_and_publishes, .preemptions = -1, .old_reads = -1) {
  weft::sched::bed d(nullptr);
  base::plain<int> x{0};
  thread([&] {
    d.sleep(base::never_ns);
    model_assert(x == 1);
  });
  thread([&] {
    x = 1;
    d.wake();
  });
  join_all();
}

MODEL_TEST(bed_each_wake_after_a_sleep_counts, .preemptions = -1, .old_reads = -1) {
  weft::sched::bed d(nullptr);
  base::atomic<int> round{0};
  thread([&] {
    d.sleep(base::never_ns);
    round.store(1, base::relaxed);
    d.sleep(base::never_ns);
  });
  thread([&] {
    d.wake();
    while (round.load(base::relaxed) == 0) base::cpu_relax();
    d.wake();
  });
  join_all();
}

MODEL_TEST(bed_two_wakers, .preemptions = -1, .old_reads = -1) {
  weft::sched::bed d(nullptr);
  thread([&] { d.sleep(base::never_ns); });
  for (int i = 0; i < 2; ++i) thread([&] { d.wake(); });
  join_all();
}

// A deadline that has passed: the sleep ends by itself, with or without the wake, which then is a token for the next.
MODEL_TEST(bed_deadline_against_wake, .preemptions = -1, .old_reads = -1) {
  weft::sched::bed d(nullptr);
  base::plain<int> x{0};
  thread([&] {
    d.sleep(0);
    d.sleep(0);
  });
  thread([&] {
    x = 1;
    d.wake();
  });
  join_all();
}

namespace {

// Sleep and interruption are one step each.
class quiet_driver final : public weft::sched::driver {
 public:
  [[nodiscard]] bool is_wanted() const noexcept override { return true; }
  void poll(base::time_ns deadline, std::size_t, weft::sched::chain<weft::task::record>&) noexcept override {
    if (deadline == base::never_ns)
      (void)explore::token_take(&no_signal_, no_signal_.initial_bits(), false, explore::where::current());
  }
  void interrupt() noexcept override { no_signal_.exchange(0, base::release); }

 private:
  base::atomic<std::uint32_t> no_signal_{1};
};

}  // namespace

MODEL_TEST(bed_wake_ends_a_sleep_in_the_driver, .preemptions = -1, .old_reads = -1) {
  quiet_driver driver;
  weft::sched::bed d(&driver);
  base::plain<int> x{0};
  thread([&] {
    weft::sched::chain<weft::task::record> none;
    d.sleep_in_driver(base::never_ns, 1, none);
    model_assert(x == 1);
  });
  thread([&] {
    x = 1;
    d.wake();
  });
  join_all();
}

// Two sleeps, one in the driver and one not, and a wake for each.
MODEL_TEST(bed_each_wake_counts_wherever_it_sleeps, .preemptions = -1, .old_reads = -1) {
  quiet_driver driver;
  weft::sched::bed d(&driver);
  base::atomic<int> round{0};
  thread([&] {
    weft::sched::chain<weft::task::record> none;
    d.sleep_in_driver(base::never_ns, 1, none);
    round.store(1, base::relaxed);
    d.sleep(base::never_ns);
  });
  thread([&] {
    d.wake();
    while (round.load(base::relaxed) == 0) base::cpu_relax();
    d.wake();
  });
  join_all();
}
