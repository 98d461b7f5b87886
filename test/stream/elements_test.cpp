// Stages that look at one element at a time, sources and sinks: what comes out, in each of their forms.
#include <memory>
#include <string>

#include "stream/support.hpp"

namespace {

namespace st = weft::stream;
using stream_test::all_of;
using stream_test::in_runtimes;
using weft::reader;
using weft::writer;
using ints = std::vector<int>;

constexpr auto doubled = [](int v) { return 2 * v; };
constexpr auto is_even = [](int v) { return v % 2 == 0; };

// Spawns what feeds a writer and collects what comes out of a reader.
template <class T, class U>
std::vector<U> through(writer<T> in, reader<U> out, std::vector<T> elements) {
  auto feeding = weft::spawn([in = std::move(in), elements = std::move(elements)]() mutable {
    for (T& e : elements) EXPECT_TRUE(in.send(std::move(e)));
  });
  auto all = all_of(std::move(out));
  feeding.join();
  return all;
}

// req: CSP-12
TEST(Forms, with_both_ends_it_runs_in_the_calling_task) {
  in_runtimes([] {
    auto [out, result] = weft::make_channel<int>(10);
    st::map(st::count(0, 5), std::move(out), doubled);
    EXPECT_TRUE(result.is_closed());
    EXPECT_EQ(all_of(std::move(result)), (ints{0, 2, 4, 6, 8}));
  });
}

// req: CSP-12
TEST(Forms, with_a_reader_it_is_spawned_and_gives_a_reader) {
  in_runtimes([] {
    EXPECT_EQ(all_of(st::map(st::count(0, 5), doubled)), (ints{0, 2, 4, 6, 8}));
    EXPECT_EQ(all_of(st::where(st::count(0, 5), is_even)), (ints{0, 2, 4}));
  });
}

// req: CSP-12
TEST(Forms, with_a_writer_it_is_spawned_and_gives_a_writer) {
  in_runtimes([] {
    auto [out, result] = weft::make_channel<int>();
    EXPECT_EQ(through(st::map(std::move(out), doubled), std::move(result), {1, 2, 3}), (ints{2, 4, 6}));
  });
}

// req: CSP-12
TEST(Forms, filter_makes_both_ends_of_a_stage) {
  in_runtimes([] {
    auto [out, in] = st::filter<int>(st::where(is_even));
    EXPECT_EQ(through(std::move(out), std::move(in), {1, 2, 3, 4}), (ints{2, 4}));
  });
}

// req: CSP-12
TEST(Forms, a_generic_function_towards_a_writer_is_told_its_type) {
  in_runtimes([] {
    auto [out, result] = weft::make_channel<std::string>();
    auto in = st::map([](auto v) { return std::to_string(v); }).from<int>() | std::move(out);
    EXPECT_EQ(through(std::move(in), std::move(result), {7}), (std::vector<std::string>{"7"}));
  });
}

// req: CSP-12
TEST(Forms, a_failure_of_one_that_runs_here_is_thrown_here_and_told_downstream) {
  in_runtimes([] {
    auto [out, result] = weft::make_channel<int>(10);
    const auto fail = [](int) -> int { throw stream_test::failure("f"); };
    EXPECT_THROW(st::map(st::count(0, 5), std::move(out), fail), stream_test::failure);
    EXPECT_THROW((void)result.recv(), stream_test::failure);
  });
}

// req: CSP-12
TEST(Elements, move_only_ones_pass_through) {
  in_runtimes([] {
    auto in = st::producer<std::unique_ptr<int>>([](writer<std::unique_ptr<int>>& out) {
      for (int i = 0; i < 5; ++i) (void)out.send(std::make_unique<int>(i));
    });
    auto out = std::move(in) | st::buffer(2) | st::where([](const std::unique_ptr<int>& p) { return *p != 2; }) |
               st::take(3) | st::batch(2) | st::map([](std::vector<std::unique_ptr<int>> b) { return *b.front(); });
    EXPECT_EQ(all_of(std::move(out)), (ints{0, 3}));
  });
}

// req: CSP-12
TEST(Elements, take_ends_after_so_many_although_more_would_come) {
  in_runtimes([] {
    EXPECT_EQ(all_of(st::count_forever(0) | st::take(3)), (ints{0, 1, 2}));
    EXPECT_EQ(all_of(st::count_forever(0) | st::take(0)), ints());
  });
}

// req: CSP-12
TEST(Elements, buffer_takes_as_many_as_it_holds_while_nobody_reads) {
  in_runtimes([] {
    auto [out, in] = st::filter<int>(st::buffer(5));
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(out.send(i));
    EXPECT_EQ(out.send_for(5, std::chrono::milliseconds(1)).status(), weft::send_status::timed_out);
    EXPECT_EQ(in.recv(), 0);
    EXPECT_TRUE(out.send(5));
    out.reset();
    EXPECT_EQ(all_of(std::move(in)), (ints{1, 2, 3, 4, 5}));
  });
}

// req: CSP-12
TEST(Elements, tee_copies_what_was_delivered_and_goes_on_without_its_side) {
  in_runtimes([] {
    auto [side, seen] = weft::make_channel<int>(100);
    auto out = st::count(0, 6) | st::tee(std::move(side));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(out.recv(), i);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(seen.recv(), i);
    seen.reset();
    EXPECT_EQ(all_of(std::move(out)), (ints{3, 4, 5}));
  });
}

// req: CSP-12
TEST(Elements, latch_gives_the_newest_as_often_as_it_is_asked) {
  in_runtimes([] {
    auto [out, in] = st::filter<int>(st::latch());
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(out.send(i));  // nobody reads, and it is never full
    EXPECT_EQ(in.recv(), 4);
    EXPECT_EQ(in.recv(), 4);
    EXPECT_TRUE(out.send(9));
    EXPECT_EQ(in.recv(), 9);
    out.reset();
    EXPECT_EQ(in.recv(), 9);
    EXPECT_EQ(in.recv(), 9);
  });
}

// req: CSP-12
TEST(Elements, enumerate_numbers_a_stream_or_makes_one_of_a_range) {
  in_runtimes([] {
    auto numbered = all_of(st::enumerate(std::vector<std::string>{"a", "b"}) | st::enumerate());
    ASSERT_EQ(numbered.size(), 2u);
    EXPECT_EQ(numbered[1], (std::pair<std::size_t, std::string>(1, "b")));
    auto [out, result] = weft::make_channel<int>(4);
    st::enumerate(std::move(out), ints{4, 5});
    EXPECT_EQ(all_of(std::move(result)), (ints{4, 5}));
    EXPECT_EQ(all_of(st::cycle(ints{1, 2, 3}) | st::take(7)), (ints{1, 2, 3, 1, 2, 3, 1}));
  });
}

// req: CSP-12
TEST(Elements, count_steps_from_here_to_there_or_says_how_many_there_were) {
  in_runtimes([] {
    EXPECT_EQ(all_of(st::count(1, 10, 4)), (ints{1, 5, 9}));
    EXPECT_EQ(all_of(st::count(0, 5, 3, true) | st::take(6)), (ints{0, 3, 1, 4, 2, 0}));
    EXPECT_EQ(all_of(st::count(5, 5)), ints());
    EXPECT_THROW((void)st::count(0, 5, 0), weft::usage_error);
    EXPECT_EQ(all_of(st::count_forever(0, 5) | st::take(3)), (ints{0, 5, 10}));
    EXPECT_EQ(all_of(st::count(0, 77) | st::count()), (std::vector<std::size_t>{77}));
    auto [out, result] = weft::make_channel<long>(4);
    st::count(std::move(out), 1, 3);
    EXPECT_EQ(all_of(std::move(result)), (std::vector<long>{1, 2}));
  });
}

// req: CSP-12
TEST(Sinks, sink_calls_its_function_for_each_and_returns_at_the_end) {
  in_runtimes([] {
    int sum = 0;
    st::count(0, 101) | st::sink([&](int v) { sum += v; });
    EXPECT_EQ(sum, 5050);
    st::sink(st::count(0, 2), [&](int v) { sum += v; });
    EXPECT_EQ(sum, 5051);
  });
}

// req: CSP-12
TEST(Sinks, what_a_sinks_function_throws_ends_the_stream_and_is_thrown_here) {
  in_runtimes([] {
    const auto run = [] {
      st::count_forever(0) | st::sink([](int v) {
        if (v == 3) throw stream_test::failure("three");
      });
    };
    EXPECT_THROW(run(), stream_test::failure);
  });
}

// req: CSP-12
TEST(Sinks, blackhole_takes_everything) {
  in_runtimes([] {
    auto out = st::consumer<int>(st::blackhole());
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(out.send(i));
    st::count(0, 100) | st::blackhole();
  });
}

// req: CSP-12
TEST(Sinks, fanout_sends_each_element_to_every_output) {
  in_runtimes([] {
    std::vector<writer<int>> outs;
    std::vector<weft::join_handle<ints>> readers;
    for (int i = 0; i < 5; ++i) {
      auto [out, in] = weft::make_channel<int>();
      outs.push_back(std::move(out));
      readers.push_back(weft::spawn([my_in = std::move(in)] { return all_of(my_in); }));
    }
    st::fanout(st::count(0, 50), std::move(outs));
    for (auto& r : readers) EXPECT_EQ(r.join(), all_of(st::count(0, 50)));
  });
}

// req: CSP-12
TEST(Sinks, outputs_of_a_fanout_come_and_go) {
  in_runtimes([] {
    auto subscribe = st::fanout(st::count_forever(0));
    auto [out1, in1] = weft::make_channel<int>();
    EXPECT_TRUE(subscribe.send(std::move(out1)));
    EXPECT_EQ(in1.recv(), 0);  // nothing was lost while there was no output
    auto [out2, in2] = weft::make_channel<int>(weft::unlimited);  // a slow output holds up the others
    auto adding =
        weft::spawn([&subscribe, out = std::move(out2)]() mutable { EXPECT_TRUE(subscribe.send(std::move(out))); });
    while (!adding.is_finished()) EXPECT_TRUE(in1.recv());
    adding.join();
    in1.reset();
    const int first = *in2.recv();
    for (int i = 1; i < 10; ++i) EXPECT_EQ(in2.recv(), first + i);
  });
}

// req: CSP-12
TEST(Sinks, a_fanout_without_outputs_ends_with_its_input) {
  in_runtimes([] {
    auto [up, in] = weft::make_channel<int>();
    auto subscribe = st::fanout(std::move(in));
    up.reset();
    (void)weft::prialt(~subscribe);
  });
}

// req: CSP-12
TEST(Sinks, a_failure_goes_to_every_output_of_a_fanout) {
  in_runtimes([] {
    auto subscribe = st::fanout(st::producer<int>([](writer<int>& out) {
      EXPECT_TRUE(out.send(1));
      throw stream_test::failure("source");
    }));
    auto [out, in] = weft::make_channel<int>(1);
    EXPECT_TRUE(subscribe.send(std::move(out)));
    EXPECT_EQ(in.recv(), 1);
    EXPECT_THROW((void)in.recv(), stream_test::failure);
  });
}

}  // namespace
