// When a woken select has its turn: behind the other woken tasks, so that it finds what they have brought meanwhile.
// ctest: channels
#include "chan/channels.hpp"
#include "sched/worker.hpp"

namespace {

using namespace chan_test;

// On one worker: two senders that are woken together, and a receiver that is already parked. `receive` says whether it
// got the value of the first. It returns true if the other one waits with its value by then.
template <class Receive>
bool second_sender_had_its_turn(Receive receive) {
  watched_runtime rt(weft::runtime_options{.workers = 1, .stealing = false, .elastic = false});
  auto [a_out, a_in] = weft::make_channel<int>(0);
  auto [b_out, b_in] = weft::make_channel<int>(0);
  bool waits = false;
  rt->spawn([&] {
      weft::latch start(1);
      auto receiver = weft::spawn([&] {
        auto& other = receive(a_in, b_in) ? b_in : a_in;
        waits = other.statistics().waiting_senders == 1;
        EXPECT_TRUE(other.recv());
      });
      auto send = [&start](weft::writer<int>& out) {
        start.wait();
        EXPECT_TRUE(out.send(1));
      };
      auto second = weft::spawn([&] { send(b_out); });
      auto first = weft::spawn([&] { send(a_out); });  // woken last, and so the first to run
      while (a_in.statistics().waiting_receivers == 0) weft::yield();
      start.count_down();
      first.join();
      second.join();
      receiver.join();
    }).join();
  return waits;
}

TEST(SelectTurn, one_of_several_sources_comes_after_what_is_ready_to_run) {
  if (weft::sched::force_migration) GTEST_SKIP() << "nothing stays in the local queues in this build";
  EXPECT_TRUE(second_sender_had_its_turn([](auto& a, auto& b) {
    int v = 0;
    return weft::alt(a >> v, b >> v).index() == 0;
  }));
}

TEST(SelectTurn, beside_a_timer_one_source_is_as_good_as_a_plain_receive) {
  if (weft::sched::force_migration) GTEST_SKIP() << "nothing stays in the local queues in this build";
  EXPECT_FALSE(second_sender_had_its_turn([](auto& a, auto&) {
    int v = 0;
    EXPECT_EQ(weft::alt(a >> v, weft::after(1h)).index(), 0u);
    return true;
  }));
  EXPECT_FALSE(second_sender_had_its_turn([](auto& a, auto&) {
    EXPECT_TRUE(a.recv());
    return true;
  }));
}

}  // namespace
