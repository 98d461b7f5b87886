// What may travel: anything that moves, also when its move throws; and the kinds of channels it travels through.
#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <thread>

#include "base/check.hpp"
#include "chan/channels.hpp"
#include "support/death_test.hpp"

namespace {

using namespace chan_test;

template <class T, class Make, class Check>
void travels(Make make_value, Check check) {
  watched_runtime rt(2);
  const auto through = [&](weft::channel_ends<T> ends) {
    auto sender = rt->spawn([&, out = std::move(ends.out)]() mutable {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(out.send(make_value(i)));
    });
    int n = 0;
    while (auto v = ends.in.recv()) check(*v, n++);
    EXPECT_EQ(n, 50);
    sender.join();
  };
  at_capacities([&](std::size_t capacity) { through(make<T>(capacity)); });
  auto [out, in] = weft::make_channel<T>(weft::conflated);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(out.send(make_value(i)));
  check(*in.recv(), 2);
  auto [w, r] = weft::make_channel<T>(2);
  EXPECT_TRUE(w.send_for(make_value(7), 1h));
  check(*r.recv_for(1h), 7);
  std::optional<T> got;
  T value = make_value(8);
  EXPECT_TRUE(weft::alt(w << std::move(value)).ok());
  EXPECT_TRUE(weft::alt(r >> got).ok());
  check(*got, 8);
}

// req: KC-11
TEST(Elements, move_only_values_travel) {
  travels<std::unique_ptr<int>>([](int i) { return std::make_unique<int>(i); },
                                [](const std::unique_ptr<int>& v, int i) { EXPECT_EQ(*v, i); });
}

// req: KC-11
TEST(Elements, strings_travel) {
  travels<std::string>([](int i) { return std::string(100, static_cast<char>('a' + i % 26)); },
                       [](const std::string& v, int i) { EXPECT_EQ(v[99], 'a' + i % 26); });
}

// req: KC-11
TEST(Elements, over_aligned_values_travel_aligned) {
  struct alignas(256) wide {
    int number;
    std::array<char, 300> rest;
  };
  travels<wide>([](int i) { return wide{i, {}}; },
                [](const wide& v, int i) {
                  EXPECT_EQ(v.number, i);
                  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&v) % 256, 0u);
                });
  struct alignas(64) small_and_wide {
    char number;
  };
  static_assert(!weft::chan::is_small<small_and_wide>);
  travels<small_and_wide>([](int i) { return small_and_wide{static_cast<char>(i)}; },
                          [](const small_and_wide& v, int i) {
                            EXPECT_EQ(v.number, i);
                            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&v) % 64, 0u);
                          });
}

// req: KC-11
TEST(Elements, large_values_travel_whole) {
  struct large {
    std::array<int, 4'096> numbers;
  };
  travels<large>(
      [](int i) {
        large l;
        l.numbers.fill(i);
        return l;
      },
      [](const large& v, int i) {
        EXPECT_EQ(v.numbers.front(), i);
        EXPECT_EQ(v.numbers.back(), i);
      });
}

// req: KC-11
TEST(Elements, small_values_of_every_size_travel_whole) {
  const auto of_size = []<std::size_t N>(std::integral_constant<std::size_t, N>) {
    using bytes = std::array<unsigned char, N>;
    travels<bytes>(
        [](int i) {
          bytes b;
          for (std::size_t k = 0; k < N; ++k) b[k] = static_cast<unsigned char>(static_cast<std::size_t>(i) + 3 * k);
          return b;
        },
        [](const bytes& v, int i) {
          for (std::size_t k = 0; k < N; ++k)
            ASSERT_EQ(v[k], static_cast<unsigned char>(static_cast<std::size_t>(i) + 3 * k));
        });
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (of_size(std::integral_constant<std::size_t, I + 1>()), ...);
  }(std::make_index_sequence<17>());
}

// req: KC-11
TEST(Elements, an_empty_struct_and_one_without_default_constructor_or_assignment_travel) {
  struct nothing {};
  auto [out, in] = weft::make_channel<nothing>(3);
  EXPECT_TRUE(out.send(nothing{}));
  EXPECT_TRUE(in.recv().has_value());
  struct fixed {
    explicit fixed(int v) : value(v) {}
    const int value;
  };
  auto [w, r] = weft::make_channel<fixed>(1);
  EXPECT_TRUE(w.send(fixed(4)));
  EXPECT_EQ(r.recv()->value, 4);
  EXPECT_TRUE(w.send(fixed(5)));
  EXPECT_EQ(r.recv_for(1h)->value, 5);
}

// An element whose move suspends when the channel makes it, under its lock.
struct sleepy {
  sleepy() = default;
  sleepy(sleepy&&) { weft::yield(); }
};

using ElementsDeathTest = support::threadsafe_death_test;

// req: W-1
TEST_F(ElementsDeathTest, a_move_that_suspends_under_the_lock_is_reported) {
  if (!base::checked_build) GTEST_SKIP() << "only checked builds look";
  EXPECT_DEATH(weft::run({.workers = 1},
                         [] {
                           auto [out, in] = weft::make_channel<sleepy>(1);
                           (void)out.send(sleepy());
                         }),
               "suspends while it holds one of Weft's internal locks");
}

// req: KC-11
TEST(Kinds, a_conflated_channel_keeps_the_newest_and_never_blocks) {
  at_worker_counts([](std::size_t workers) {
    const auto before = token::alive.load();
    watched_runtime rt(workers);
    auto [out, in] = weft::make_channel<token>(weft::conflated);
    EXPECT_EQ(in.capacity(), 1u);
    auto sender = rt->spawn([&] {
      for (int i = 0; i < 1'000; ++i) EXPECT_TRUE(out.send(token(i)));
    });
    sender.join();
    EXPECT_EQ(in.size(), 1u);
    EXPECT_EQ(in.recv()->value(), 999);
    EXPECT_FALSE(in.try_recv());
    EXPECT_EQ(token::alive.load(), before);
    EXPECT_TRUE(out.try_send(token(5)));
    EXPECT_TRUE(out.try_send(token(6)));
    out.close();
    EXPECT_EQ(in.recv()->value(), 6);
    EXPECT_FALSE(in.recv());
  });
}

// req: KC-11
TEST(Kinds, a_reader_of_a_conflated_channel_sees_numbers_rise_and_the_last_one) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [out, in] = weft::make_channel<int>(weft::conflated);
    const int n = static_cast<int>(scaled(20'000));
    auto sender = rt->spawn([&] {
      for (int i = 1; i <= n; ++i) {
        EXPECT_TRUE(out.send(i));
        if (i % 16 == 0) weft::yield();
      }
      out.close();
    });
    auto receiver = rt->spawn([&] {
      int last = 0;
      while (auto v = in.recv()) {
        EXPECT_LT(last, *v);
        last = *v;
      }
      return last;
    });
    sender.join();
    EXPECT_EQ(receiver.join(), n);
  });
}

// req: KC-11 LS-C4
TEST(Kinds, a_conflated_send_goes_to_a_waiting_receiver) {
  watched_runtime rt(2);
  auto [out, in] = weft::make_channel<token>(weft::conflated);
  auto receiver = rt->spawn([&] { return in.recv()->value(); });
  until_receivers_wait(in);
  EXPECT_TRUE(out.send(token(1)));
  EXPECT_EQ(in.size(), 0u);
  EXPECT_EQ(receiver.join(), 1);
}

// req: KC-11
TEST(Kinds, an_unlimited_channel_takes_all_and_gives_it_back_in_order) {
  const auto before = token::alive.load();
  auto [out, in] = weft::make_channel<token>(weft::unlimited);
  const int n = static_cast<int>(scaled(200'000));
  int next = 0;
  for (int round = 0; round < 3; ++round) {  // the queue moves over chunk edges at every offset
    for (int i = 0; i < n; ++i) ASSERT_EQ(out.try_send(token(i)).status(), send_status::sent);
    EXPECT_EQ(in.size(), static_cast<std::size_t>(n));
    for (next = 0; next < n; ++next) ASSERT_EQ(in.try_recv()->value(), next);
    EXPECT_FALSE(in.try_recv());
    EXPECT_TRUE(out.send(token(-1)));
    EXPECT_EQ(in.recv()->value(), -1);
  }
  EXPECT_EQ(token::alive.load(), before);
}

// Counts objects, those that were moved from as well.
struct counted {
  explicit counted(int v) : value(v) { ++objects; }
  counted(counted&& other) noexcept : value(other.value) { ++objects; }
  counted& operator=(counted&& other) noexcept = default;
  ~counted() { --objects; }
  int value;
  static inline base::atomic<int> objects{0};
};

// req: CC-7
TEST(Kinds, every_object_that_a_channel_makes_ends) {
  const auto use = [](weft::channel_ends<counted> ends, int sent, int received) {
    for (int i = 0; i < sent; ++i) EXPECT_TRUE(ends.out.send(counted(i)));
    for (int i = 0; i < received; ++i) EXPECT_TRUE(ends.in.recv());
  };
  for (const int received : {0, 1, 3}) {
    use(weft::make_channel<counted>(4), 3, received);
    EXPECT_EQ(counted::objects.load(), 0) << "bounded, " << received << " received";
    use(weft::make_channel<counted>(weft::unlimited), 3, received);
    EXPECT_EQ(counted::objects.load(), 0) << "unlimited, " << received << " received";
    use(weft::make_channel<counted>(weft::conflated), 3, std::min(received, 1));
    EXPECT_EQ(counted::objects.load(), 0) << "conflated, " << received << " received";
  }
}

// Capacity and size are each possible; their product is zero in 64 bits.
// req: CC-7
TEST(Kinds, a_buffer_larger_than_any_memory_is_refused) {
  struct huge {
    std::byte bytes[std::size_t{1} << 24];
  };
  EXPECT_THROW((void)weft::make_channel<huge>(std::size_t{1} << 40), std::bad_alloc);
}

// ---- moves that throw ------------------------------------------------------------------------------------------------

// Throws in a move while it has throws left; a move that throws leaves both as they were.
class jumpy {
 public:
  jumpy(int v, int throws) : value_(v), throws_(throws) { ++alive; }
  jumpy(jumpy&& other) : value_(other.value_), throws_(other.throws_) {
    if (other.throws_ > 0) {
      --other.throws_;
      throw std::runtime_error("moved");
    }
    ++alive;
  }
  jumpy& operator=(jumpy&&) = delete;
  ~jumpy() { --alive; }
  // A conflated channel needs it.
  friend void swap(jumpy& a, jumpy& b) noexcept {
    std::swap(a.value_, b.value_);
    std::swap(a.throws_, b.throws_);
  }
  [[nodiscard]] int value() const noexcept { return value_; }
  static inline base::atomic<int> alive{0};

 private:
  int value_;
  int throws_;
};

// req: KC-11
TEST(ThrowingMove, a_send_that_throws_leaves_the_channel_as_it_was) {
  const auto stays = [](weft::channel_ends<jumpy> ends) {
    auto& [out, in] = ends;
    EXPECT_THROW((void)out.send(jumpy(1, 1)), std::runtime_error);
    EXPECT_THROW((void)out.try_send(jumpy(1, 1)), std::runtime_error);
    EXPECT_THROW((void)out.send_for(jumpy(1, 1), 1h), std::runtime_error);
    EXPECT_EQ(in.size(), 0u);
    EXPECT_EQ(in.statistics().sent, 0u);
    EXPECT_TRUE(out.send(jumpy(2, 0)));
    EXPECT_EQ(in.recv()->value(), 2);
  };
  at_capacities([&](std::size_t capacity) {
    if (capacity != 0) stays(make<jumpy>(capacity));
  });
  stays(weft::make_channel<jumpy>(weft::conflated));
  EXPECT_EQ(jumpy::alive.load(), 0);
}

// The sender's move throws when it hands over to a waiting receiver: the sender hears of it, the receiver waits on.
// req: CC-7 CC-10
TEST(ThrowingMove, a_hand_over_that_throws_is_the_movers_affair_and_the_receiver_waits_on) {
  at_worker_counts([](std::size_t workers) {
    for (const bool as_select : {false, true})
      at_capacities([&](std::size_t capacity) {
        watched_runtime rt(workers);
        auto [out, in] = make<jumpy>(capacity);
        auto receiver = rt->spawn([&] { return as_select ? in.recv_for(1h)->value() : in.recv()->value(); });
        until_receivers_wait(in);
        jumpy mine(1, 1);
        EXPECT_THROW((void)out.send(std::move(mine)), std::runtime_error);
        until_receivers_wait(in);
        EXPECT_EQ(in.statistics().sent, 0u);
        EXPECT_TRUE(out.send(std::move(mine)));
        EXPECT_EQ(receiver.join(), 1);
        EXPECT_EQ(in.statistics().sent, 1u);
        EXPECT_EQ(in.statistics().received, 1u);
      });
  });
  EXPECT_EQ(jumpy::alive.load(), 0);
}

// The receiver moves out of a waiting sender's frame and meets the exception; the sender offers its value again.
// req: CC-7 CC-10
TEST(ThrowingMove, a_receive_from_a_waiting_sender_that_throws_leaves_the_value_with_the_sender) {
  at_worker_counts([](std::size_t workers) {
    for (const bool as_select : {false, true}) {
      watched_runtime rt(workers);
      auto [out, in] = weft::make_channel<jumpy>(0);
      auto sender = rt->spawn([&] {
        jumpy mine(1, 1);
        EXPECT_TRUE(as_select ? out.send_for(std::move(mine), 1h) : out.send(std::move(mine)));
      });
      until_senders_wait(out);
      EXPECT_THROW((void)in.recv(), std::runtime_error);
      until_senders_wait(out);
      EXPECT_EQ(in.recv()->value(), 1);
      sender.join();
      EXPECT_TRUE(nobody_waits(in));
    }
  });
  EXPECT_EQ(jumpy::alive.load(), 0);
}

// What a sender does that waits with a value whose first move throws.
enum class way : std::uint8_t { plain, timed, selected };

bool send_by(way w, const weft::writer<jumpy>& out) {
  jumpy mine(1, 1);
  switch (w) {
    case way::plain: return static_cast<bool>(out.send(std::move(mine)));
    case way::timed: return static_cast<bool>(out.send_for(std::move(mine), 1h));
    case way::selected: return weft::select(out << std::move(mine)).ok();
  }
  return false;
}

// A sender waits, a receive meets or causes the move that throws, and `then(out, in)` comes before the sender, which is on the same
// worker, offers its value again. Returns what the sender was told.
template <class Then>
bool offers_again(way w, std::size_t capacity, Then then) {
  auto [out, in] = make<jumpy>(capacity);
  for (std::size_t i = 0; i < capacity; ++i) EXPECT_TRUE(out.send(jumpy(0, 0)));
  auto sender = weft::spawn([&to = out, w] { return send_by(w, to); });
  until_senders_wait(out);
  if (capacity == 0)
    EXPECT_THROW((void)in.recv(), std::runtime_error);
  else
    EXPECT_EQ(in.recv()->value(), 0);
  then(out, in);
  return sender.join();
}

template <class Test>
void on_one_worker_each_way(Test test) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([&] {
    for (const std::size_t capacity : {0, 1})
      for (const way w : {way::plain, way::timed, way::selected}) test(w, capacity);
  });
  EXPECT_EQ(jumpy::alive.load(), 0);
}

// req: CC-7 LS-C1
TEST(ThrowingMove, a_sender_that_offers_again_after_the_reader_has_gone_keeps_its_value) {
  on_one_worker_each_way([](way w, std::size_t capacity) {
    EXPECT_FALSE(offers_again(w, capacity, [](auto&, auto& in) { in.close(); }));
  });
}

// The receiver makes room and the waiting sender's value cannot be moved into it: that sender meets the exception, and the
// next one gets the room.
// req: CC-7 LS-C4
TEST(ThrowingMove, a_waiting_sender_whose_move_throws_does_not_keep_the_next_one_waiting) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [out, in] = weft::make_channel<jumpy>(1);
    EXPECT_TRUE(out.send(jumpy(0, 0)));
    auto first = rt->spawn([&] {
      jumpy mine(1, 1'000);  // whoever moves it
      EXPECT_THROW((void)out.send(std::move(mine)), std::runtime_error);
    });
    until_senders_wait(out, 1);
    auto second = rt->spawn([&] { EXPECT_TRUE(out.send(jumpy(2, 0))); });
    until_senders_wait(out, 2);
    EXPECT_EQ(in.recv()->value(), 0);
    second.join();  // without another receive
    EXPECT_EQ(in.recv()->value(), 2);
    first.join();
    EXPECT_TRUE(nobody_waits(in));
    EXPECT_EQ(in.statistics().sent, 2u);
  });
  EXPECT_EQ(jumpy::alive.load(), 0);
}

// An element that throws in one more move than the channel itself makes must not be lost on its way out.
// req: CC-10
TEST(ThrowingMove, a_value_that_throws_on_its_way_out_stays_in_the_channel) {
  // Throws in its n-th move.
  struct picky {
    int value;
    int moves_left;
    explicit picky(int v, int moves) : value(v), moves_left(moves) {}
    picky(picky&& other) : value(other.value), moves_left(other.moves_left - 1) {
      if (other.moves_left == 0) {
        other.moves_left = 100;
        throw std::runtime_error("moved too often");
      }
    }
  };
  const auto stays = [](auto receive) {
    for (int moves = 1; moves < 4; ++moves) {
      auto [out, in] = weft::make_channel<picky>(2);
      EXPECT_TRUE(out.send(picky(1, moves)));
      bool got = false;
      try {
        got = receive(in);
      } catch (const std::runtime_error&) {
        got = in.size() == 1;
      }
      EXPECT_TRUE(got) << "lost after " << moves << " moves";
    }
  };
  stays([](weft::reader<picky>& in) { return in.recv()->value == 1; });
  stays([](weft::reader<picky>& in) { return in.try_recv()->value == 1; });
  stays([](weft::reader<picky>& in) { return in.recv_for(1h)->value == 1; });
  stays([](weft::reader<picky>& in) { return in.begin()->value == 1; });
}

// req: CC-7
TEST(ThrowingMove, nothing_is_lost_or_doubled_when_moves_throw_at_random) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    at_capacities([&](std::size_t capacity) {
      auto [out, in] = make<jumpy>(capacity);
      base::atomic<std::int64_t> sent{0};
      base::atomic<std::int64_t> received{0};
      std::vector<weft::join_handle<void>> senders;
      std::vector<weft::join_handle<void>> receivers;
      for (int s = 0; s < 3; ++s)
        senders.push_back(rt->spawn([&, s] {
          for (int i = 0; i < static_cast<int>(scaled(600)); ++i) {
            jumpy mine(i * 3 + s, i % 4);
            for (;;) try {
                ASSERT_TRUE(out.send(std::move(mine)));
                break;
              } catch (const std::runtime_error&) {}
            sent += i * 3 + s;
          }
        }));
      for (int r = 0; r < 3; ++r)
        receivers.push_back(rt->spawn([&] {
          for (;;) try {
              auto v = in.recv();
              if (!v) return;
              received += v->value();
            } catch (const std::runtime_error&) {}
        }));
      for (auto& h : senders) h.join();
      out.close();
      for (auto& h : receivers) h.join();
      ASSERT_EQ(sent.load(), received.load());
      ASSERT_EQ(in.statistics().sent, in.statistics().received);
    });
  });
  EXPECT_EQ(jumpy::alive.load(), 0);
}

}  // namespace
