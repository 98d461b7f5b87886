// Stages put together with |.
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
constexpr auto plus_one = [](int v) { return v + 1; };

// req: CSP-13
TEST(Compose, reader_and_stages_give_a_reader) {
  in_runtimes([] {
    auto out = st::count(0, 10) | st::where([](int v) { return v % 3 == 0; }) | st::map(doubled) |
               st::map([](int v) { return std::to_string(v); });
    static_assert(std::same_as<decltype(out), reader<std::string>>);
    EXPECT_EQ(all_of(std::move(out)), (std::vector<std::string>{"0", "6", "12", "18"}));
  });
}

// req: CSP-13
TEST(Compose, stages_and_a_writer_give_a_writer) {
  in_runtimes([] {
    auto [out, result] = weft::make_channel<int>(10);
    auto in = st::map(plus_one) | st::map(doubled) | std::move(out);
    static_assert(std::same_as<decltype(in), writer<int>>);
    EXPECT_TRUE(in.send(1));
    EXPECT_TRUE(in.send(2));
    in.reset();
    EXPECT_EQ(all_of(std::move(result)), (ints{4, 6}));
  });
}

// req: CSP-13
TEST(Compose, stages_give_a_stage_that_can_be_used_again) {
  in_runtimes([] {
    const auto both = st::map(plus_one) | st::map(doubled);
    EXPECT_EQ(all_of(st::count(0, 3) | both), (ints{2, 4, 6}));
    EXPECT_EQ(all_of(st::count(5, 7) | both), (ints{12, 14}));
    auto [sent, result] = weft::make_channel<int>(10);
    both(st::count(0, 2), std::move(sent));
    EXPECT_EQ(all_of(std::move(result)), (ints{2, 4}));
    auto [out, in] = st::filter<int>(both);
    EXPECT_TRUE(out.send(20));
    EXPECT_EQ(in.recv(), 42);
  });
}

// req: CSP-13
TEST(Compose, any_grouping_gives_the_same) {
  in_runtimes([] {
    const auto a = st::map(plus_one);
    const auto b = st::map(doubled);
    const auto c = st::where([](int v) { return v > 4; });
    const ints expected{6, 8};
    EXPECT_EQ(all_of(((st::count(0, 4) | a) | b) | c), expected);
    EXPECT_EQ(all_of(st::count(0, 4) | (a | (b | c))), expected);
    EXPECT_EQ(all_of(st::count(0, 4) | ((a | b) | c)), expected);
    EXPECT_EQ(all_of(st::count(0, 4) | a | (b | c)), expected);
  });
}

// req: CSP-13
TEST(Compose, nothing_runs_before_there_is_an_end) {
  in_runtimes([] {
    bool ran = false;
    const auto stage = st::map([&](int v) {
                         ran = true;
                         return v;
                       }) |
                       st::map(doubled) | st::sink([](int) {});
    for (int i = 0; i < 10; ++i) weft::yield();
    EXPECT_FALSE(ran);
    st::count(0, 1) | stage;
    EXPECT_TRUE(ran);
  });
}

// req: CSP-13
TEST(Compose, stages_and_a_sink_give_a_sink) {
  in_runtimes([] {
    int sum = 0;
    const auto summing = st::map(doubled) | st::sink([&](int v) { sum += v; });
    st::count(0, 5) | summing;
    EXPECT_EQ(sum, 20);
  });
}

// req: CSP-13
TEST(Compose, a_failure_in_the_middle_goes_both_ways) {
  in_runtimes([] {
    auto out = st::count_forever(0) | (st::map(plus_one) | st::map([](int v) {
                                         if (v == 3) throw stream_test::failure("three");
                                         return v;
                                       }) |
                                       st::map(doubled));
    EXPECT_EQ(out.recv(), 2);
    EXPECT_EQ(out.recv(), 4);
    EXPECT_THROW((void)out.recv(), stream_test::failure);
  });
}

}  // namespace
