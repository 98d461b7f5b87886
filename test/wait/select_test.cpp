// Select: which arm wins, what is said when none is ready, what is refused.
// ctest: channels
#include <thread>

#include "chan/channels.hpp"

namespace {

using namespace chan_test;
using weft::alt;
using weft::prialt;

// req: CSP-4
TEST(Select, prialt_takes_the_first_ready_arm_in_order) {
  auto [a_out, a_in] = weft::make_channel<int>(4);
  auto [b_out, b_in] = weft::make_channel<int>(4);
  int v = 0;
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(a_out.send(i));
    EXPECT_TRUE(b_out.send(10 + i));
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(prialt(a_in >> v, b_in >> v).index(), 0u);
    EXPECT_EQ(v, i);
  }
  EXPECT_EQ(prialt(a_in >> v, b_in >> v).index(), 1u);
  EXPECT_EQ(v, 10);
  EXPECT_EQ(prialt(a_in >> v, a_out << 7, b_in >> v).index(), 1u);
  EXPECT_EQ(a_in.recv(), 7);
}

// The sender sends to a and then to b. So a is ready whenever b is, and b never wins first.
template <class T>
void prialt_is_strict(std::size_t workers, std::size_t capacity) {
  watched_runtime rt(workers);
  auto [a_out, a_in] = make<T>(capacity);
  auto [b_out, b_in] = make<T>(capacity);
  auto [ack_out, ack_in] = weft::make_channel<int>(1);
  const std::size_t rounds = scaled(20'000);
  auto sender = rt->spawn([&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      ASSERT_TRUE(a_out.send(T(1)));
      ASSERT_TRUE(b_out.send(T(2)));
      ASSERT_TRUE(ack_in.recv());
    }
  });
  std::size_t wrong = 0;
  auto receiver = rt->spawn([&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      T v(0);
      if (prialt(a_in >> v, b_in >> v).index() != 0) ++wrong;
      (void)prialt(a_in >> v, b_in >> v);
      ASSERT_TRUE(ack_out.send(1));
    }
  });
  sender.join();
  receiver.join();
  EXPECT_EQ(wrong, 0u);
}

// req: CSP-4
TEST(Select, prialt_is_strict_while_its_arms_become_ready) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    prialt_is_strict<int>(workers, 1);
    prialt_is_strict<int>(workers, 3);
    prialt_is_strict<std::string::size_type>(workers, 8);
    prialt_is_strict<std::vector<int>>(workers, 1);
  });
}

// The same without ever waiting: the select looks at the very moment at which the values come.
// req: CSP-4
TEST(Select, prialt_is_strict_when_it_polls) {
  support::watchdog guard(110s);
  auto [a_out, a_in] = weft::make_channel<int>(1);
  auto [b_out, b_in] = weft::make_channel<int>(1);
  const std::size_t rounds = scaled(30'000);
  base::atomic<std::size_t> taken{0};
  std::thread sender([&] {
    for (std::size_t i = 1; i <= rounds; ++i) {
      ASSERT_TRUE(a_out.try_send(1));
      ASSERT_TRUE(b_out.try_send(2));
      while (taken.load() != i) std::this_thread::yield();
    }
  });
  std::size_t wrong = 0;
  // If nothing has come for so long, the sender waits for a processor, perhaps for this one.
  constexpr int patience = 10'000;
  const auto poll = [&] {
    for (int looks = 1;; ++looks) {
      int v = 0;
      const auto s = prialt(a_in >> v, b_in >> v, weft::otherwise);
      if (s.index() != 2) return s.index();
      if (looks % patience == 0) std::this_thread::yield();
    }
  };
  for (std::size_t i = 1; i <= rounds; ++i) {
    if (poll() != 0) ++wrong;
    (void)poll();
    taken = i;
  }
  sender.join();
  EXPECT_EQ(wrong, 0u);
}

// There is always a value in one of two channels or in both, because a value goes into the other channel before it
// leaves the first. A select over both that puts the value back never finds nothing.
TEST(Select, nothing_ready_is_true_of_one_moment) {
  support::watchdog guard(60s);
  auto [a_out, a_in] = weft::make_channel<int>(2);
  auto [b_out, b_in] = weft::make_channel<int>(2);
  EXPECT_TRUE(a_out.send(1));
  base::atomic<bool> over{false};
  std::thread mover([&] {
    for (std::size_t i = 0; i < scaled(400'000); ++i) {
      EXPECT_TRUE(b_out.send(1));
      EXPECT_TRUE(a_in.recv());
      EXPECT_TRUE(a_out.send(1));
      EXPECT_TRUE(b_in.recv());
    }
    over = true;
  });
  std::size_t nothing = 0;
  while (!over.load()) {
    int v = 0;
    const auto s = prialt(a_in >> v, b_in >> v, weft::otherwise);
    if (s.index() == 2) ++nothing;
    if (s.index() != 2) {
      EXPECT_TRUE((s.index() == 0 ? a_out : b_out).send(1));
    }
  }
  mover.join();
  EXPECT_EQ(nothing, 0u);
}

// The same of room: one of the two channels has some, and there is more in the other one before it is used up.
// req: CSP-4
TEST(Select, no_room_anywhere_is_true_of_one_moment) {
  support::watchdog guard(60s);
  auto [a_out, a_in] = weft::make_channel<int>(2);
  auto [b_out, b_in] = weft::make_channel<int>(2);
  EXPECT_TRUE(a_out.send(1));
  EXPECT_TRUE(b_out.send(1));
  EXPECT_TRUE(b_out.send(1));
  base::atomic<bool> over{false};
  std::thread mover([&] {
    for (std::size_t i = 0; i < scaled(400'000); ++i) {
      EXPECT_TRUE(b_in.recv());
      EXPECT_TRUE(a_out.send(1));
      EXPECT_TRUE(a_in.recv());
      EXPECT_TRUE(b_out.send(1));
    }
    over = true;
  });
  std::size_t nothing = 0;
  while (!over.load()) {
    const auto s = prialt(a_out << 1, b_out << 1, weft::otherwise);
    if (s.index() == 2)
      ++nothing;
    else
      EXPECT_TRUE((s.index() == 0 ? a_in : b_in).recv());
  }
  mover.join();
  EXPECT_EQ(nothing, 0u);
}

// req: CSP-4
TEST(Select, otherwise_wins_when_nothing_is_ready_and_only_then) {
  const auto check = [] {
    auto [out, in] = weft::make_channel<int>(1);
    int v = 0;
    EXPECT_EQ(alt(in >> v, weft::otherwise).index(), 1u);
    EXPECT_EQ(prialt(weft::otherwise, in >> v).index(), 0u);
    EXPECT_EQ(prialt(weft::otherwise, out << 5).index(), 1u);
    EXPECT_EQ(alt(out << 6, weft::otherwise).index(), 1u);
    EXPECT_EQ(alt(in >> v, weft::otherwise).index(), 0u);
    EXPECT_EQ(v, 5);
    bool nothing = false;
    EXPECT_EQ(weft::select(in.on_recv([](int) { FAIL(); }), weft::on_nothing([&] { nothing = true; })).index(), 1u);
    EXPECT_TRUE(nothing);
    EXPECT_EQ(alt(weft::otherwise).index(), 0u);
    EXPECT_TRUE(nobody_waits(in));
  };
  check();
  weft::run({.workers = 2, .elastic = false}, check);
}

// req: CSP-4
TEST(Select, otherwise_works_in_a_run_time_list_and_behind_a_condition) {
  auto [out, in] = weft::make_channel<int>(1);
  int v = 0;
  auto receive = in >> v;
  std::vector<weft::select_arm*> arms = {&receive, &weft::otherwise};
  EXPECT_EQ(prialt(arms).index(), 1u);
  EXPECT_TRUE(out.send(3));
  EXPECT_EQ(prialt(arms).index(), 0u);
  EXPECT_EQ(v, 3);
  EXPECT_EQ(alt(in >> v, weft::when(true, weft::otherwise)).index(), 1u);
  auto soon = weft::after(1ms);
  EXPECT_EQ(alt(in >> v, soon, weft::when(false, weft::otherwise)).index(), 1u);
}

// req: CSP-4
TEST(Select, empty_handles_and_false_conditions_disable_arms) {
  auto [out, in] = weft::make_channel<int>(1);
  const weft::reader<int> no_reader;
  const weft::writer<int> no_writer;
  int v = 0;
  EXPECT_TRUE(out.send(1));
  EXPECT_EQ(
      prialt(no_reader >> v, no_writer << 1, ~no_reader, ~no_writer, weft::when(false, out << 9), in >> v).index(), 5u);
  EXPECT_EQ(v, 1);
  EXPECT_EQ(prialt(no_reader >> v, weft::otherwise).index(), 1u);
  EXPECT_EQ(prialt(weft::when(true, out << 2), weft::when(false, in >> v)).index(), 0u);
}

// req: CSP-4
TEST(Select, a_select_that_could_never_end_is_refused) {
  const auto check = [] {
    const weft::reader<int> none;
    int v = 0;
    EXPECT_THROW((void)alt(none >> v), weft::usage_error);
    EXPECT_THROW((void)prialt(none >> v, ~none), weft::usage_error);
    EXPECT_THROW((void)weft::select(none.on_recv([](int) {})), weft::usage_error);
    std::vector<weft::select_arm*> empty;
    EXPECT_THROW((void)alt(empty), weft::usage_error);
    std::vector<weft::receive_arm<int>> disabled;
    disabled.push_back(none >> v);
    EXPECT_THROW((void)prialt(disabled), weft::usage_error);
  };
  check();
  weft::run({.workers = 1, .elastic = false}, check);
}

}  // namespace
