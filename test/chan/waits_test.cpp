// Operations that wait: time limits, cancellation, shields, outside threads. Whatever ends a wait, the value has one owner.
#include <functional>
#include <thread>

#include "chan/channels.hpp"

namespace {

using namespace chan_test;
using clock = std::chrono::steady_clock;

// ---- time limits -----------------------------------------------------------------------------------------------------

template <class F>
void in_task_and_thread(F f) {
  f();
  weft::run({.workers = 2}, f);
}

// req: BZ-11 LS-C1
TEST(TimeLimit, a_send_that_nobody_takes_ends_in_time_and_keeps_its_value) {
  in_task_and_thread([] {
    for (const std::size_t capacity : {0, 1, 3}) {
      auto [out, in] = make<token>(capacity);
      for (std::size_t i = 0; i < capacity; ++i) EXPECT_TRUE(out.send(token(0)));
      token mine(1);
      const auto from = clock::now();
      EXPECT_EQ(out.send_for(std::move(mine), 5ms).status(), send_status::timed_out);
      EXPECT_GE(clock::now() - from, 5ms);
      EXPECT_EQ(out.send_until(std::move(mine), clock::now() - 1h).status(), send_status::timed_out);
      EXPECT_EQ(out.send_for(std::move(mine), -1h).status(), send_status::timed_out);
      EXPECT_EQ(mine.value(), 1);
      EXPECT_TRUE(nobody_waits(in));
      EXPECT_EQ(in.size(), capacity);
    }
  });
}

// req: BZ-11
TEST(TimeLimit, a_receive_that_gets_nothing_ends_in_time) {
  in_task_and_thread([] {
    for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, std::size_t{3}, no_limit}) {
      auto [out, in] = make<int>(capacity);
      const auto from = clock::now();
      EXPECT_EQ(in.recv_for(5ms), std::nullopt);
      EXPECT_GE(clock::now() - from, 5ms);
      EXPECT_EQ(in.recv_until(clock::now() - 1h), std::nullopt);
      EXPECT_FALSE(in.is_closed());
      EXPECT_TRUE(nobody_waits(in));
    }
  });
}

// req: BZ-11
TEST(TimeLimit, what_is_ready_is_done_even_if_the_time_has_passed) {
  in_task_and_thread([] {
    auto [out, in] = weft::make_channel<int>(1);
    const int one = 1;  // not a temporary: it is copied
    EXPECT_TRUE(out.send_until(one, clock::now() - 1h));
    EXPECT_EQ(in.recv_until(clock::now() - 1h), 1);
    int two = 2;
    EXPECT_TRUE(out.send_for(two, 0s));
    EXPECT_EQ(in.recv_for(0s), 2);
  });
}

// req: BZ-11
TEST(TimeLimit, for_ever_is_a_time_limit_too) {
  watched_runtime rt(2);
  auto [out, in] = weft::make_channel<int>(0);
  auto task = rt->spawn([&] { return in.recv_for(std::chrono::hours::max()); });
  until_receivers_wait(in);
  EXPECT_TRUE(out.send_until(1, clock::time_point::max()));
  EXPECT_EQ(task.join(), 1);
  std::thread outside([&] { EXPECT_EQ(in.recv_until(clock::time_point::max()), 2); });
  until_receivers_wait(in);
  EXPECT_TRUE(out.send_for(2, std::chrono::duration<double>(1e300)));
  outside.join();
}

// Runs `wait` in a task, and then on a thread outside; each time `meanwhile` runs here.
template <class Wait, class Meanwhile>
void beside(Wait wait, Meanwhile meanwhile) {
  {
    watched_runtime rt(2);
    auto task = rt->spawn(wait);
    meanwhile();
    task.join();
  }
  std::thread outside(wait);
  meanwhile();
  outside.join();
}

template <class T, class Make>
void sends_that_wait_are_served(Make value) {
  for (const std::size_t capacity : {0, 1, 3}) {
    auto [out, in] = make<T>(capacity);
    for (std::size_t i = 0; i < capacity; ++i) EXPECT_TRUE(out.send(value()));
    beside([&to = out, &value] { EXPECT_EQ(to.send_for(value(), 1h).status(), send_status::sent); },
           [&from = in] {
             until_senders_wait(from);
             EXPECT_TRUE(from.recv());
           });
    EXPECT_EQ(in.size(), capacity);
  }
}

// req: BZ-11 LS-C1
TEST(TimeLimit, a_send_that_has_to_wait_is_sent_when_somebody_receives) {
  support::watchdog guard(60s);
  sends_that_wait_are_served<int>([] { return 1; });
  sends_that_wait_are_served<token>([] { return token(1); });
}

// req: BZ-11 LS-C1
TEST(TimeLimit, a_send_that_waits_when_the_reader_goes_is_closed_and_keeps_its_value) {
  support::watchdog guard(60s);
  for (const std::size_t capacity : {0, 1, 3}) {
    auto [out, in] = make<token>(capacity);
    for (std::size_t i = 0; i < capacity; ++i) EXPECT_TRUE(out.send(token(0)));
    const auto wait = [&to = out] {
      token mine(1);
      EXPECT_EQ(to.send_for(std::move(mine), 1h).status(), send_status::closed);
      EXPECT_TRUE(mine.is_there());
    };
    watched_runtime rt(2);
    auto task = rt->spawn(wait);
    std::thread outside(wait);
    until_senders_wait(out, 2);
    in.reset();
    task.join();
    outside.join();
  }
}

// req: BZ-11
TEST(TimeLimit, a_receive_that_has_to_wait_gets_what_is_sent) {
  support::watchdog guard(60s);
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, std::size_t{3}, no_limit}) {
    auto [out, in] = make<int>(capacity);
    beside([&from = in] { EXPECT_EQ(from.recv_for(1h), 7); },
           [&to = out] {
             until_receivers_wait(to);
             EXPECT_TRUE(to.send(7));
           });
    EXPECT_TRUE(nobody_waits(in));
  }
}

// req: BZ-11 CC-12
TEST(TimeLimit, a_receive_with_a_time_limit_throws_what_the_channel_was_closed_with) {
  support::watchdog guard(60s);
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{1}, std::size_t{3}, no_limit}) {
    auto [out, in] = make<int>(capacity);
    watched_runtime rt(2);
    auto task = rt->spawn([&from = in] { EXPECT_EQ(text_thrown_by([&] { (void)from.recv_for(1h); }), "broken"); });
    std::thread outside([&from = in] { EXPECT_EQ(text_thrown_by([&] { (void)from.recv_for(1h); }), "broken"); });
    until_receivers_wait(in, 2);
    out.close(error("broken"));
    task.join();
    outside.join();
    EXPECT_EQ(text_thrown_by([&] { (void)in.recv_until(clock::now() - 1h); }), "broken");
  }
}

// Both ends give up and try again at the worst moments. What one end was told was sent, the other end received.
void time_limits_lose_nothing(std::size_t capacity, const std::function<void(std::function<void()>)>& start,
                              const std::function<void()>& join_all) {
  auto [out, in] = make<token>(capacity);
  base::atomic<std::int64_t> sent{0};
  base::atomic<std::int64_t> received{0};
  base::atomic<int> senders{2};
  for (int s = 0; s < 2; ++s)
    start([&, s] {
      for (int i = 0; i < static_cast<int>(scaled(400)); ++i) {
        token mine(i * 2 + s);
        while (!out.send_for(std::move(mine), std::chrono::microseconds(i % 60))) ASSERT_TRUE(mine.is_there());
        ASSERT_FALSE(mine.is_there());
        sent += i * 2 + s;
      }
      if (--senders == 0) out.close();
    });
  for (int r = 0; r < 2; ++r)
    start([&, r] {
      for (int i = r; !in.is_drained(); ++i)
        if (auto v = in.recv_for(std::chrono::microseconds(i % 70))) received += v->value();
    });
  join_all();
  EXPECT_EQ(sent.load(), received.load());
  EXPECT_TRUE(nobody_waits(in));
}

// req: BZ-11 CC-10 LS-C1
TEST(TimeLimit, values_that_meet_time_limits_are_neither_lost_nor_doubled) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    for (const std::size_t capacity : {0, 1, 3}) {
      watched_runtime rt(workers);
      std::vector<weft::join_handle<void>> all;
      time_limits_lose_nothing(
          capacity, [&](std::function<void()> f) { all.push_back(rt->spawn(std::move(f))); },
          [&] {
            for (auto& h : all) h.join();
          });
    }
  });
}

// req: BZ-11 CC-10
TEST(TimeLimit, outside_threads_that_meet_time_limits_lose_nothing_either) {
  support::watchdog guard(110s);
  for (const std::size_t capacity : {0, 1, 3}) {
    std::vector<std::thread> all;
    time_limits_lose_nothing(
        capacity, [&](std::function<void()> f) { all.emplace_back(std::move(f)); },
        [&] {
          for (auto& t : all) t.join();
        });
  }
}

// ---- cancellation -----------------------------------------------------------------------------------------------------

// Runs `waiting` in a task, cancels it once it waits, and it must end so.
template <class End, class Waiting>
void is_cancelled(const End& end, Waiting waiting) {
  at_worker_counts([&](std::size_t workers) {
    watched_runtime rt(workers);
    auto task = rt->spawn(waiting);
    until([&] { return !nobody_waits(end); });
    task.cancel();
    EXPECT_THROW(task.join(), weft::task_cancelled);
    EXPECT_TRUE(nobody_waits(end));
  });
}

// req: CC-10 LS-P3
TEST(Cancel, a_waiting_send_ends_and_its_value_is_still_the_callers) {
  for (const std::size_t capacity : {0, 1, 3}) {
    auto [out, in] = make<token>(capacity);
    for (std::size_t i = 0; i < capacity; ++i) EXPECT_TRUE(out.send(token(0)));
    const auto keeps = [](auto send) {
      return [send] {
        token mine(1);
        EXPECT_THROW(send(mine), weft::cancelled);
        EXPECT_EQ(mine.value(), 1);
        weft::this_task::check();
      };
    };
    is_cancelled(out, keeps([&out](token& v) { (void)out.send(std::move(v)); }));
    is_cancelled(out, keeps([&out](token& v) { (void)out.send_for(std::move(v), 1h); }));
    is_cancelled(out, keeps([&out](token& v) { (void)weft::alt(out << std::move(v)); }));
    EXPECT_EQ(in.size(), capacity);
    EXPECT_EQ(in.statistics().sent, capacity);
  }
}

// req: CC-10 LS-P3
TEST(Cancel, a_waiting_receive_ends_and_takes_nothing) {
  at_capacities([](std::size_t capacity) {
    auto [out, in] = make<int>(capacity);
    is_cancelled(in, [&in] { (void)in.recv(); });
    is_cancelled(in, [&in] { (void)in.recv_for(1h); });
    is_cancelled(in, [&in] {
      for (int& v : in) (void)v;
    });
    is_cancelled(in, [&in] {
      int v = 0;
      (void)weft::prialt(in >> v, ~in);
    });
    EXPECT_EQ(in.statistics().received, 0u);
  });
}

// req: LS-P3
TEST(Cancel, waiting_for_a_death_ends_too) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [out, in] = weft::make_channel<int>(0);
    auto task = rt->spawn([&] { (void)weft::alt(~out, ~in); });
    task.cancel();
    EXPECT_THROW(task.join(), weft::task_cancelled);
    in.reset();
    out.reset();
  });
}

// req: LS-P3 CC-10
TEST(Cancel, an_operation_that_could_complete_at_once_is_a_cancellation_point_and_does_nothing) {
  watched_runtime rt(1);
  at_capacities([&](std::size_t capacity) {
    if (capacity == 0) return;
    auto [out, in] = make<int>(capacity);
    auto task = rt->spawn([&] {
      weft::this_task::ref().cancel();
      EXPECT_THROW((void)out.send(1), weft::cancelled);
      EXPECT_THROW((void)out.send_for(1, 1h), weft::cancelled);
      EXPECT_EQ(out.size(), 0u);
      EXPECT_TRUE(out.try_send(2));
      EXPECT_THROW((void)in.recv(), weft::cancelled);
      EXPECT_THROW((void)in.recv_for(1h), weft::cancelled);
      EXPECT_EQ(in.try_recv(), 2);
      out.close();
      EXPECT_THROW((void)in.recv(), weft::cancelled);
    });
    EXPECT_NO_THROW(task.join());
  });
}

// req: LS-P3
TEST(Cancel, a_shield_defers_it) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  at_capacities([&](std::size_t capacity) {
    auto [out, in] = make<int>(capacity);
    auto task = rt->spawn([&from = in] {
      const weft::this_task::shield s;
      return from.recv();
    });
    until_receivers_wait(in);
    task.cancel();
    EXPECT_EQ(in.statistics().waiting_receivers, 1u);
    EXPECT_TRUE(out.send(4));
    EXPECT_EQ(task.join(), 4);
  });
}

// With one worker, whoever the cancellation has woken would have queued itself again before the empty task ends.
// req: LS-P3
TEST(Cancel, a_shielded_waiter_that_is_cancelled_keeps_its_place) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  at_capacities([&](std::size_t capacity) {
    auto [out, in] = make<int>(capacity);
    auto first = rt->spawn([&from = in] {
      const weft::this_task::shield s;
      return from.recv();
    });
    until_receivers_wait(in, 1);
    auto second = rt->spawn([&from = in] { return from.recv(); });
    until_receivers_wait(in, 2);
    first.cancel();
    rt->run([] {});
    EXPECT_TRUE(out.send(1));
    EXPECT_TRUE(out.send(2));
    EXPECT_EQ(first.join(), 1);
    EXPECT_EQ(second.join(), 2);
  });
}

// A destructor that says goodbye over a channel while its task unwinds.
// req: LS-P3
TEST(Cancel, operations_during_unwinding_act_as_shielded) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  auto [never_out, never_in] = weft::make_channel<int>(0);
  struct goodbye {
    weft::writer<int>& to;
    ~goodbye() { EXPECT_TRUE(to.send(1)); }
  };
  for (const std::size_t capacity : {0, 1, 3}) {
    auto [out, in] = make<int>(capacity);
    for (std::size_t i = 0; i < capacity; ++i) EXPECT_TRUE(out.send(1));
    auto task = rt->spawn([&to = out, &never_from = never_in] {
      const goodbye g{to};
      (void)never_from.recv();
    });
    until_receivers_wait(never_in);
    task.cancel();
    until_senders_wait(out);
    for (std::size_t i = 0; i < capacity + 1; ++i) EXPECT_EQ(in.recv(), 1);
    EXPECT_THROW(task.join(), weft::task_cancelled);
  }
}

// Cancels come while exchanges are made: each either happened on both sides or on none.
// req: CC-10 CC-7
TEST(Cancel, a_cancel_never_splits_an_exchange) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    const auto before = token::alive.load();
    watched_runtime rt(workers);
    for (const std::size_t capacity : {0, 1, 3})
      for (const bool timed : {false, true})
        for (std::size_t round = 0; round < scaled(600); ++round) {
          auto [out, in] = make<token>(capacity);
          base::atomic<int> sent{0};
          base::atomic<int> received{0};
          auto sender = rt->spawn([&] {
            for (int i = 0; i < 6; ++i) {
              token mine(i);
              try {
                if (timed ? out.send_for(std::move(mine), 1h) : out.send(std::move(mine))) ++sent;
              } catch (const weft::cancelled&) {
                EXPECT_TRUE(mine.is_there());
                throw;
              }
              EXPECT_FALSE(mine.is_there());
            }
          });
          auto receiver = rt->spawn([&] {
            for (int i = 0; i < 6; ++i)
              if (timed ? in.recv_for(1h) : in.recv()) ++received;
          });
          // The one that is not cancelled would wait for ever.
          weft::task_ref both[] = {sender.ref(), receiver.ref()};
          if (round % 5 == 0) until([&] { return received.load() > 2 || sent.load() > 2; });
          both[round % 2].cancel();
          for (std::size_t i = 0; i < round % 4; ++i) std::this_thread::yield();
          both[(round + 1) % 2].cancel();
          for (auto* h : {&sender, &receiver}) try {
              h->join();
            } catch (const weft::task_cancelled&) {}
          while (in.try_recv()) ++received;
          ASSERT_EQ(sent.load(), received.load());
          ASSERT_TRUE(nobody_waits(in));
        }
    until([&] { return token::alive.load() == before; });
  });
}

// A cancelled waiter must not keep a value from somebody who waits behind it.
// req: CC-8 CC-10
TEST(Cancel, a_cancelled_waiter_does_not_swallow_what_is_for_the_next_one) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (const std::size_t capacity : {0, 1, 2})
      for (std::size_t round = 0; round < scaled(1'000); ++round) {
        auto [out, in] = make<int>(capacity);
        auto first = rt->spawn([&] { return in.recv().value(); });
        auto second = rt->spawn([&] { return in.recv().value(); });
        if (round % 2 == 0) until_receivers_wait(in, 2);
        first.cancel();
        EXPECT_TRUE(out.send(1));
        int left = 1;
        try {
          left -= first.join();
        } catch (const weft::task_cancelled&) {}
        if (left == 0) {
          EXPECT_TRUE(out.send(1));
        }
        ASSERT_EQ(second.join(), 1);
      }
  });
}

// ---- outside threads ----------------------------------------------------------------------------------------------------

// req: LS-W1
TEST(OutsideThreads, both_ends_work_from_threads_alone) {
  support::watchdog guard(60s);
  at_capacities([](std::size_t capacity) {
    auto [out, in] = make<int>(capacity);
    const int n = static_cast<int>(scaled(4'000));
    base::atomic<std::int64_t> sum{0};
    std::vector<std::thread> all;
    for (int s = 0; s < 2; ++s)
      all.emplace_back([w = out, last = n]() mutable {
        for (int i = 1; i <= last; ++i) EXPECT_TRUE(w.send(i));
      });
    for (int r = 0; r < 2; ++r)
      all.emplace_back([&sum, r = in]() mutable {
        for (int& v : r) sum += v;
      });
    out.reset();
    for (auto& t : all) t.join();
    EXPECT_EQ(sum.load(), std::int64_t{n} * (n + 1));
  });
}

// req: LS-W1
TEST(OutsideThreads, threads_and_tasks_meet_in_both_directions) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (const std::size_t capacity : {0, 1, 8}) {
      auto [there_out, there_in] = make<int>(capacity);
      auto [back_out, back_in] = make<int>(capacity);
      auto echo = rt->spawn([&] {
        while (auto v = there_in.recv()) EXPECT_TRUE(back_out.send(*v));
        back_out.close();
      });
      for (int i = 0; i < static_cast<int>(scaled(2'000)); ++i) {
        ASSERT_TRUE(there_out.send(i));
        ASSERT_EQ(back_in.recv(), i);
      }
      there_out.close();
      EXPECT_EQ(back_in.recv(), std::nullopt);
      echo.join();
    }
  });
}

// req: LS-W1 LS-C3
TEST(OutsideThreads, a_thread_that_waits_is_woken_by_a_close_and_by_the_readers_death) {
  watched_runtime rt(2);
  auto [out, in] = weft::make_channel<token>(0);
  std::thread receiver([r = in]() mutable { EXPECT_FALSE(r.recv()); });
  until_receivers_wait(in);
  rt->run([&] { out.close(); });
  receiver.join();
  auto [out2, in2] = weft::make_channel<token>(0);
  std::thread sender([w = out2]() mutable {
    token mine(1);
    EXPECT_FALSE(w.send(std::move(mine)));
    EXPECT_TRUE(mine.is_there());
  });
  until_senders_wait(out2);
  rt->run([r = std::move(in2)]() mutable { r.reset(); });
  sender.join();
}

}  // namespace
