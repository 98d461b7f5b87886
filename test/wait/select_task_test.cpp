// Select and the task that waits in it: cancellation, the budget, and moves to another worker.
// ctest: channels
#include "chan/channels.hpp"

namespace {

using namespace chan_test;
using weft::alt;
using weft::prialt;

// req: CSP-4
TEST(Select, a_select_is_always_a_cancellation_point) {
  watched_runtime rt(2);
  auto task = rt->spawn([] {
    auto [out, in] = weft::make_channel<int>(1);
    until([] { return weft::this_task::is_cancelled(); });
    EXPECT_THROW((void)alt(out << 1), weft::cancelled);
    EXPECT_THROW((void)prialt(out << 1, weft::otherwise), weft::cancelled);
    EXPECT_EQ(in.size(), 0u);
    const weft::this_task::shield s;
    EXPECT_TRUE(alt(out << 1).ok());
  });
  task.cancel();
  EXPECT_NO_THROW(task.join());
}

// Cancelled while it waits: shielded, or in a destructor that runs because an exception is on its way.
// req: CC-10 LS-P3
TEST(Select, one_that_waits_shielded_or_while_its_task_unwinds_is_not_cancelled) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [out, in] = weft::make_channel<int>(0);
    auto [other_out, other_in] = weft::make_channel<int>(0);
    base::atomic<int> sum{0};
    struct selects_at_its_end {
      weft::reader<int>&in, &other;
      base::atomic<int>& sum;
      ~selects_at_its_end() {
        int v = 0;
        EXPECT_TRUE(alt(in >> v, other >> v).ok());
        sum += v;
      }
    };
    auto shielded = rt->spawn([&, &from = in, &other = other_in] {
      const weft::this_task::shield shield;
      const selects_at_its_end now{from, other, sum};
    });
    auto unwinds = rt->spawn([&, &from = in, &other = other_in] {
      try {
        const selects_at_its_end now{from, other, sum};
        throw 1;
      } catch (int) {}
    });
    until_receivers_wait(in, 2);
    shielded.cancel();
    unwinds.cancel();
    EXPECT_TRUE(out.send(1));
    EXPECT_TRUE(other_out.send(2));
    shielded.join();
    unwinds.join();
    EXPECT_EQ(sum.load(), 3);
  });
}

// req: CSP-4 BZ-6
TEST(Select, one_that_is_always_ready_still_gives_way) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([] {
    weft::event e;
    e.set();
    for (const bool in_order : {false, true}) {
      base::atomic<bool> ran{false};
      auto other = weft::spawn([&] { ran = true; });
      while (!ran.load()) EXPECT_TRUE(in_order ? prialt(e.on_set()).ok() : alt(e.on_set()).ok());
      other.join();
    }
  });
}

// An element whose move suspends: the select goes on wherever that has taken it.
struct moves_slowly {
  explicit moves_slowly(int n) : number(n) {}
  moves_slowly(moves_slowly&& from) : number(from.number) {
    if (!weft::this_task::running()) return;
    const weft::this_task::shield stay;
    weft::sleep_for(std::chrono::microseconds(100));
  }
  int number;
  char large[40] = {};
};

// req: W-1 CSP-7
TEST(Select, goes_on_where_the_move_of_an_element_has_taken_it) {
  support::watchdog guard(100s);
  weft::runtime rt({.workers = 4, .elastic = false});
  rt.run([] {
    constexpr int rounds = 300;
    auto [out, in] = weft::make_channel<moves_slowly>();
    auto sender = weft::spawn([to = std::move(out)]() mutable {
      for (int i = 0; i < rounds; ++i) (void)to.send(moves_slowly(i));
    });
    for (int i = 0; i < rounds; ++i) {
      while (in.statistics().waiting_senders == 0) weft::sleep_for(std::chrono::microseconds(50));
      auto now = weft::after(std::chrono::seconds(0));
      for (int spent = 0; spent < 127; ++spent) (void)prialt(now);  // the budget, without parking
      std::optional<moves_slowly> got;
      EXPECT_TRUE(prialt(in >> got));
      EXPECT_EQ(got->number, i);
    }
    sender.join();
  });
}

}  // namespace
