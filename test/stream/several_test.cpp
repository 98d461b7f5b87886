// Several streams into one, elements put together, elements against the clock.
#include <algorithm>
#include <numeric>

#include "stream/support.hpp"

namespace {

using namespace std::chrono_literals;
namespace st = weft::stream;
using clock_type = std::chrono::steady_clock;
using stream_test::all_of;
using stream_test::failure;
using stream_test::in_runtimes;
using weft::reader;
using weft::writer;
using ints = std::vector<int>;

// req: CSP-12
TEST(Chain, one_stream_after_the_other) {
  in_runtimes([] {
    EXPECT_EQ(all_of(st::chain({st::count(0, 2), st::count(10, 12), st::count(20, 21)})), (ints{0, 1, 10, 11, 20}));
    EXPECT_EQ(all_of(st::chain(st::count(0, 2), st::count(5, 6))), (ints{0, 1, 5}));
    auto [out, result] = weft::make_channel<int>(9);
    st::chain({st::count(0, 1), st::count(2, 3)}, std::move(out));
    EXPECT_EQ(all_of(std::move(result)), (ints{0, 2}));
  });
}

TEST(Merge, every_element_of_every_stream_comes_once_and_in_its_own_order) {
  in_runtimes([] {
    constexpr int streams = 20, each = 50;
    std::vector<reader<int>> ins;
    for (int s = 0; s < streams; ++s) ins.push_back(st::count(s * each, (s + 1) * each));
    std::vector<int> expected(streams);
    for (int s = 0; s < streams; ++s) expected[static_cast<std::size_t>(s)] = s * each;
    int received = 0;
    for (int v : st::merge(std::move(ins))) {
      EXPECT_EQ(v, expected[static_cast<std::size_t>(v / each)]++);
      ++received;
    }
    EXPECT_EQ(received, streams * each);
  });
}

// One stream always has an element ready. It is the first, then the last.
TEST(Merge, no_stream_is_passed_over_for_ever) {
  in_runtimes([] {
    for (bool busy_first : {true, false}) {
      auto [out, busy] = weft::make_channel<int>(weft::unlimited);
      for (int i = 0; i < 1000; ++i) EXPECT_TRUE(out.send(i));
      auto quiet = st::count(-1, 0);
      support::until([&] { return quiet.statistics().waiting_senders == 1; });
      auto in = busy_first ? st::merge({busy, quiet}) : st::merge({quiet, busy});
      int before = 0;
      while (in.recv() != -1) ++before;
      EXPECT_LT(before, 1000);
    }
  });
}

TEST(Merge, a_failure_of_one_ends_all_though_the_others_are_silent) {
  in_runtimes([] {
    auto out =
        st::merge({st::mute<int>(), st::producer<int>([](writer<int>&) { throw failure("one"); }), st::mute<int>()});
    EXPECT_THROW((void)out.recv(), failure);
  });
}

TEST(Zip, one_of_each_until_the_first_ends) {
  in_runtimes([] {
    using triple = std::tuple<int, int, long>;
    EXPECT_EQ(all_of(st::zip(st::count(0, 2), st::count_forever(5), st::count(7L, 70L))),
              (std::vector<triple>{{0, 5, 7}, {1, 6, 8}}));
    EXPECT_EQ(all_of(st::count(0, 9) | st::zip(st::count(5, 6))), (std::vector<std::tuple<int, int>>{{0, 5}}));
  });
}

TEST(Zip, it_ends_with_any_of_its_streams_while_it_waits_for_another) {
  in_runtimes([] {
    EXPECT_EQ(st::zip(st::mute<int>(), st::count(0, 0)).recv(), std::nullopt);
    EXPECT_EQ(st::zip(st::count(0, 0), st::mute<int>()).recv(), std::nullopt);
    EXPECT_EQ(st::zip(st::mute<int>(), st::mute<int>(), st::count(0, 1)).recv_for(1ms), std::nullopt);
  });
}

TEST(Batch, groups_of_a_size_and_the_rest_at_the_end) {
  in_runtimes([] {
    EXPECT_EQ(all_of(st::count(0, 7) | st::batch(3)), (std::vector<ints>{{0, 1, 2}, {3, 4, 5}, {6}}));
    EXPECT_THROW((void)st::batch(0), weft::usage_error);
  });
}

TEST(Batch, a_batch_is_sent_when_its_time_is_up_though_it_is_not_full) {
  in_runtimes([] {
    auto [out, in] = st::filter<int>(st::batch(100, 2ms));
    EXPECT_TRUE(out.send(1));
    EXPECT_TRUE(out.send(2));
    ints all;
    while (all.size() < 2) std::ranges::copy(*in.recv(), std::back_inserter(all));
    EXPECT_EQ(all, (ints{1, 2}));
  });
}

TEST(Batch, what_was_gathered_comes_before_the_failure) {
  in_runtimes([] {
    auto out = st::producer<int>([](writer<int>& to) {
                 EXPECT_TRUE(to.send(1));
                 throw failure("source");
               }) |
               st::batch(3);
    EXPECT_EQ(out.recv(), (ints{1}));
    EXPECT_THROW((void)out.recv(), failure);
  });
}

TEST(Window, windows_overlap_or_leave_gaps_by_their_step) {
  in_runtimes([] {
    EXPECT_EQ(all_of(st::count(0, 5) | st::window(3)), (std::vector<ints>{{0, 1, 2}, {1, 2, 3}, {2, 3, 4}}));
    EXPECT_EQ(all_of(st::count(0, 8) | st::window(2, 3)), (std::vector<ints>{{0, 1}, {3, 4}, {6, 7}}));
  });
}

// req: CSP-12
TEST(Quantize, amounts_go_in_quanta_come_out_and_the_rest_is_left) {
  in_runtimes([] {
    auto [left, residue] = weft::make_channel<int>(1);
    EXPECT_EQ(all_of(st::enumerate(ints{3, 4, 1, 10}) | st::quantize(5, std::move(left))), (ints{5, 5, 5}));
    EXPECT_EQ(residue.recv(), 3);
  });
}

// req: CSP-12
TEST(Quantize, quanta_may_be_a_stream_and_end_it) {
  in_runtimes([] {
    auto [left, residue] = weft::make_channel<int>(1);
    auto out = st::count_forever(1, 0) | st::quantize(st::enumerate(ints{2, 1, 3}), std::move(left));
    EXPECT_EQ(all_of(std::move(out)), (ints{2, 1, 3}));
    EXPECT_LE(*residue.recv(), 1);
  });
}

TEST(Debounce, only_the_newest_of_a_burst_comes_out) {
  in_runtimes([] {
    auto [out, in] = st::filter<int>(st::debounce(1h));
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(out.send(i));
    EXPECT_EQ(in.try_recv(), std::nullopt);
    out.reset();  // the end is quiet enough
    EXPECT_EQ(all_of(std::move(in)), (ints{99}));
  });
}

TEST(Debounce, an_element_comes_out_once_it_was_quiet_for_the_time) {
  in_runtimes([] {
    auto [out, in] = st::filter<int>(st::debounce(2ms));
    const auto from = clock_type::now();
    EXPECT_TRUE(out.send(1));
    EXPECT_EQ(in.recv(), 1);
    EXPECT_GE(clock_type::now() - from, 2ms);
  });
}

TEST(Throttle, elements_come_no_faster_and_none_is_lost) {
  in_runtimes([] {
    const auto from = clock_type::now();
    EXPECT_EQ(all_of(st::count(0, 5) | st::throttle(2ms)), (ints{0, 1, 2, 3, 4}));
    EXPECT_GE(clock_type::now() - from, 8ms);
  });
}

TEST(Throttle, a_slow_reader_gets_no_burst) {
  in_runtimes([] {
    auto in = st::count(0, 3) | st::throttle(3ms);
    weft::sleep_for(6ms);
    const auto from = clock_type::now();
    EXPECT_EQ(in.recv(), 0);
    EXPECT_EQ(in.recv(), 1);
    EXPECT_GE(clock_type::now() - from, 3ms);
  });
}

TEST(ParallelMap, results_come_in_order_whatever_each_takes) {
  in_runtimes([] {
    auto out = st::count(0, 200) | st::parallel_map(8, [](int v) {
                 for (int i = 0; i < (v * 7) % 13; ++i) weft::yield();
                 return v * v;
               });
    for (int i = 0; i < 200; ++i) EXPECT_EQ(out.recv(), i * i);
    EXPECT_EQ(out.recv(), std::nullopt);
  });
}

TEST(ParallelMap, without_order_every_result_comes_once) {
  in_runtimes([] {
    auto all = all_of(st::count(0, 200) | st::parallel_map_unordered(8, [](int v) {
                        for (int i = 0; i < (v * 7) % 13; ++i) weft::yield();
                        return v;
                      }));
    std::ranges::sort(all);
    EXPECT_EQ(all, all_of(st::count(0, 200)));
  });
}

TEST(ParallelMap, so_many_calls_run_at_once_and_no_more) {
  in_runtimes([] {
    weft::base::atomic<int> running{0}, most{0};
    support::latch all_four(4);
    auto out = st::count(0, 40) | st::parallel_map(4, [&](int v) {
                 const int now = ++running;
                 for (int seen = most.load(); now > seen && !most.compare_exchange_weak(seen, now);) {}
                 if (v < 4) all_four.arrive_and_wait();
                 weft::yield();
                 --running;
                 return v;
               });
    EXPECT_EQ(all_of(std::move(out)).size(), 40u);
    EXPECT_EQ(most.load(), 4);
  });
}

TEST(ParallelMap, in_order_the_results_before_a_failing_call_come_before_its_failure) {
  in_runtimes([] {
    for (int i = 0; i < 50; ++i) {
      weft::event failed;
      auto out = st::count(0, 10) | st::parallel_map(3, [&](int v) -> int {
                   if (v < 2) failed.wait();  // later elements are done first, and fail first
                   if (v < 2) return v;
                   failed.set();
                   throw failure(std::to_string(v));
                 });
      EXPECT_EQ(out.recv(), 0);
      EXPECT_EQ(out.recv(), 1);
      try {
        (void)out.recv();
        FAIL() << "the third element failed";
      } catch (const failure& f) {
        EXPECT_STREQ(f.what(), "2");
      }
    }
  });
}

TEST(ParallelMap, results_need_not_be_assignable) {
  in_runtimes([] {
    struct fixed {
      const int value;
    };
    int sum = 0;
    for (const fixed& f : st::count(0, 5) | st::parallel_map(2, [](int v) { return fixed{v}; })) sum += f.value;
    EXPECT_EQ(sum, 10);
  });
}

TEST(ParallelMap, a_failing_call_ends_it_though_others_wait) {
  in_runtimes([] {
    auto [up, in] = weft::make_channel<int>();
    auto out = std::move(in) | st::parallel_map_unordered(4, [](int v) -> int {
                 if (v == 1) throw failure("one");
                 for (;;) weft::sleep_for(1h);  // only cancellation ends it
               });
    EXPECT_TRUE(up.send(0));
    EXPECT_TRUE(up.send(1));
    EXPECT_THROW((void)out.recv(), failure);
    (void)weft::prialt(~up);
  });
}

TEST(ParallelMap, calls_are_cancelled_when_nobody_reads) {
  in_runtimes([] {
    support::latch started(3);
    auto out = st::count_forever(0) | st::parallel_map(3, [&](int v) -> int {
                 if (v < 3) started.count_down();
                 for (;;) weft::sleep_for(1h);
               });
    started.wait();
    out.reset();
  });
}

// req: CSP-12
TEST(Rpc, a_call_gets_its_own_answer) {
  in_runtimes([] {
    auto add = st::make_rpc<int(int, int)>([](int a, int b) { return a + b; });
    std::vector<weft::join_handle<void>> callers;
    for (int i = 0; i < 20; ++i)
      callers.push_back(weft::spawn([add, i]() mutable {
        for (int k = 0; k < 20; ++k) EXPECT_EQ(add(i, k), i + k);
      }));
    for (auto& c : callers) c.join();
  });
}

// req: CSP-12
TEST(Rpc, an_exception_is_thrown_by_the_call_it_belongs_to_and_the_server_goes_on) {
  in_runtimes([] {
    auto half = st::make_rpc<int(int)>([](int v) {
      if (v % 2 != 0) throw failure("odd");
      return v / 2;
    });
    EXPECT_THROW(half(3), failure);
    EXPECT_EQ(half(4), 2);
  });
}

// req: CSP-12
TEST(Rpc, a_call_that_nobody_answers_says_so) {
  in_runtimes([] {
    using signature = void(int);
    auto [requests, in] = weft::make_channel<st::rpc_request<signature>>();
    st::rpc_client<signature> call(std::move(requests));
    auto server = weft::spawn([my_in = std::move(in)]() mutable { (void)my_in.recv(); });  // takes one and leaves
    EXPECT_THROW(call(1), st::rpc_closed);
    server.join();
    EXPECT_THROW(call(2), st::rpc_closed);
  });
}

// req: CSP-12
TEST(Rpc, as_a_stage_it_calls_with_tuples) {
  in_runtimes([] {
    EXPECT_EQ(all_of(st::zip(st::count(0, 3), st::count(5, 8)) | st::rpc([](int a, int b) { return a * b; })),
              (ints{0, 6, 14}));
  });
}

}  // namespace
