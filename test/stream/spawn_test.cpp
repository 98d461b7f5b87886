// producer, consumer, filter: how streams begin, end, fail and die.
#include <string>

#include "stream/support.hpp"

namespace {

namespace st = weft::stream;
using stream_test::all_of;
using stream_test::failure;
using stream_test::in_runtimes;
using weft::reader;
using weft::writer;

// req: CSP-11
TEST(Producer, everything_it_sends_is_received_and_the_stream_ends_with_it) {
  in_runtimes([] {
    auto in = st::producer<int>([](writer<int>& out) {
      for (int i = 0; i < 1000; ++i) EXPECT_TRUE(out.send(i));
    });
    int expected = 0;
    for (int v : in) EXPECT_EQ(v, expected++);
    EXPECT_EQ(expected, 1000);
  });
}

// req: CSP-11
TEST(Producer, its_exception_is_thrown_to_the_consumer_after_what_was_sent) {
  in_runtimes([] {
    auto in = st::producer<int>(
        [](writer<int>& out) {
          EXPECT_TRUE(out.send(1));
          EXPECT_TRUE(out.send(2));
          throw failure("empty");
        },
        4);
    EXPECT_EQ(in.recv(), 1);
    EXPECT_EQ(in.recv(), 2);
    EXPECT_THROW((void)in.recv(), failure);
  });
}

// req: CSP-11
TEST(Producer, it_learns_by_a_failed_send_that_nobody_reads) {
  in_runtimes([] {
    weft::base::atomic<bool> told{false};
    {
      auto in = st::producer<int>([&](writer<int>& out) {
        while (out.send(1)) {}
        told = true;
      });
      EXPECT_EQ(in.recv(), 1);
    }
    support::until([&] { return told.load(); });
  });
}

// A part must not be taken for the whole.
// req: CSP-11
TEST(Producer, a_cancelled_one_ends_its_stream_with_task_cancelled) {
  in_runtimes([] {
    auto [tell, told] = weft::make_oneshot<weft::task_ref>();
    auto in = st::producer<int>([my_tell = std::move(tell)](writer<int>& out) mutable {
      EXPECT_TRUE(my_tell.send(weft::this_task::ref()));
      for (;;) (void)out.send(1);
    });
    EXPECT_EQ(in.recv(), 1);
    told.recv()->cancel();
    EXPECT_THROW(
        {
          while (in.recv()) {}
        },
        weft::task_cancelled);
  });
}

// req: CSP-11
TEST(Consumer, it_gets_everything_and_then_the_end) {
  in_runtimes([] {
    auto [done, sum] = weft::make_oneshot<int>();
    auto out = st::consumer<int>([my_done = std::move(done)](reader<int>& in) mutable {
      int total = 0;
      for (int v : in) total += v;
      EXPECT_TRUE(my_done.send(total));
    });
    for (int i = 1; i <= 100; ++i) EXPECT_TRUE(out.send(i));
    out.reset();
    EXPECT_EQ(sum.recv(), 5050);
  });
}

// req: CSP-11
TEST(Consumer, its_exception_fails_sends_and_says_why) {
  in_runtimes([] {
    auto out = st::consumer<int>([](reader<int>& in) {
      (void)in.recv();
      throw failure("full");
    });
    EXPECT_TRUE(out.send(1));
    EXPECT_EQ(out.send(2).status(), weft::send_status::closed);
    ASSERT_NE(out.close_error(), nullptr);
    EXPECT_THROW(std::rethrow_exception(out.close_error()), failure);
  });
}

// req: CSP-11
TEST(Consumer, an_exception_that_can_be_told_to_nobody_is_an_unhandled_one) {
  support::watchdog guard(std::chrono::seconds(60));
  weft::base::atomic<int> unhandled{0};
  support::watched_runtime rt(weft::runtime_options{
      .workers = 2, .on_unhandled_exception = [&](std::string_view name, const std::exception_ptr&) {
        EXPECT_EQ(name, "consumer");
        ++unhandled;
      }});
  rt->run([] {
    auto out = st::consumer<int>([](reader<int>& in) {
      while (in.recv()) {}
      throw failure("too late");
    });
    EXPECT_TRUE(out.send(1));
  });
  support::until([&] { return unhandled.load() == 1; });
}

// req: CSP-11
TEST(Filter, both_ends_are_joined_by_it) {
  in_runtimes([] {
    auto [out, in] = st::filter<int, std::string>([](reader<int>& from, writer<std::string>& to) {
      for (int v : from) EXPECT_TRUE(to.send(std::to_string(v)));
    });
    auto feeding = weft::spawn([my_out = std::move(out)]() mutable {
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(my_out.send(i));
    });
    EXPECT_EQ(all_of(std::move(in)), (std::vector<std::string>{"0", "1", "2"}));
    feeding.join();
  });
}

TEST(Filter, its_ends_have_the_names_and_the_order_of_those_of_a_channel) {
  in_runtimes([] {
    const auto passes = [](auto ends) {
      EXPECT_TRUE(ends.out.send(1));
      EXPECT_EQ(ends.in.recv(), 1);
      auto [out, in] = std::move(ends);
      EXPECT_TRUE(out.send(2));
      EXPECT_EQ(in.recv(), 2);
    };
    passes(weft::make_channel<int>(1));
    passes(st::filter<int>(st::buffer(1)));
    passes(st::filter<int, int>([](reader<int>& from, writer<int>& to) {
      for (int v : from) EXPECT_TRUE(to.send(v));
    }));
  });
}

// req: CSP-11
TEST(Filter, an_exception_upstream_travels_through_every_stage) {
  in_runtimes([] {
    auto in = st::producer<int>([](writer<int>& out) {
      EXPECT_TRUE(out.send(1));
      throw failure("source");
    });
    auto last =
        std::move(in) | st::map([](int v) { return v + 1; }) | st::buffer(3) | st::where([](int) { return true; });
    EXPECT_EQ(last.recv(), 2);
    EXPECT_THROW((void)last.recv(), failure);
  });
}

// req: CSP-11
TEST(Filter, why_a_consumer_left_is_told_to_the_producer) {
  in_runtimes([] {
    auto [tell, told] = weft::make_oneshot<bool>();
    auto in = st::producer<int>([my_tell = std::move(tell)](writer<int>& out) mutable {
      while (out.send(1)) {}
      EXPECT_TRUE(my_tell.send(out.close_error() != nullptr));
    });
    auto last = std::move(in) | st::map([](int v) { return v; }) | st::map([](int v) { return v; });
    EXPECT_EQ(last.recv(), 1);
    last.close(std::make_exception_ptr(failure("enough")));
    EXPECT_EQ(told.recv(), true);
  });
}

// A spawned task holds the only other end, so what it drops is seen.
// req: CSP-11
TEST(Filter, cancelling_a_stage_closes_both_of_its_ends) {
  in_runtimes([] {
    auto [tell, told] = weft::make_oneshot<weft::task_ref>();
    auto [out, in] = st::filter<int, int>([my_tell = std::move(tell)](reader<int>& from, writer<int>&) mutable {
      EXPECT_TRUE(my_tell.send(weft::this_task::ref()));
      (void)from.recv();
    });
    told.recv()->cancel();
    EXPECT_THROW((void)in.recv(), weft::task_cancelled);
    (void)weft::prialt(~out);
    EXPECT_FALSE(out.send(1));
  });
}

}  // namespace
