// Streams in the large.
#include <numeric>

#include "stream/support.hpp"
#include "support/process.hpp"

namespace {

namespace st = weft::stream;
using stream_test::all_of;
using stream_test::in_runtimes;
using weft::reader;
using weft::writer;

// A filter is added for each prime, and all of them end when nobody wants another.
// req: CSP-11 CSP-12
TEST(Scenario, a_sieve_finds_the_primes) {
  in_runtimes([] {
    auto in = st::count_forever(2);
    std::vector<int> primes;
    while (primes.size() < 100) {
      const int p = *in.recv();
      primes.push_back(p);
      in = std::move(in) | st::where([p](int v) { return v % p != 0; });
    }
    EXPECT_EQ(primes[99], 541);
    EXPECT_EQ(std::accumulate(primes.begin(), primes.end(), 0), 24133);
  });
}

// req: CSP-12 CSP-13
TEST(Scenario, elements_pass_a_daisy_chain_of_a_thousand_stages) {
  in_runtimes([] {
    const int stages = static_cast<int>(support::under_tsan ? 100 : 1000);
    auto out = st::count(0, 10);
    for (int i = 0; i < stages; ++i) out = std::move(out) | st::map([](int v) { return v + 1; });
    for (int i = 0; i < 10; ++i) EXPECT_EQ(out.recv(), i + stages);
    EXPECT_EQ(out.recv(), std::nullopt);
  });
}

// req: CSP-12
TEST(Scenario, the_last_readers_death_runs_up_a_daisy_chain_of_a_thousand_stages) {
  in_runtimes([] {
    const int stages = static_cast<int>(support::under_tsan ? 100 : 1000);
    auto [up, first] = weft::make_channel<int>();
    reader<int> out = std::move(first);
    for (int i = 0; i < stages; ++i) out = std::move(out) | st::map([](int v) { return v + 1; });
    out.reset();
    (void)weft::prialt(~up);
    EXPECT_FALSE(up.send(1));
  });
}

// One stream divides into 256 and flows together again.
reader<int> capillaries(reader<int> in, int width) {
  if (width == 1) return std::move(in) | st::map([](int v) { return v; });
  std::vector<reader<int>> halves;
  for (int i = 0; i < 2; ++i) halves.push_back(capillaries(in | st::buffer(1), width / 2));  // the two share `in`
  in.reset();
  return st::merge(std::move(halves));
}

// req: CSP-12
TEST(Scenario, everything_gets_through_a_capillary_tree_256_wide) {
  in_runtimes([] {
    const int elements = static_cast<int>(support::scaled(2'000)) + 256;
    std::vector<int> times(static_cast<std::size_t>(elements));
    for (int v : capillaries(st::count(0, elements), 256)) ++times[static_cast<std::size_t>(v)];
    for (int t : times) EXPECT_EQ(t, 1);
  });
}

// What comes out goes in again until it is small: the loop ends itself when nothing is in it any more.
// req: CSP-12
TEST(Scenario, a_feedback_loop_runs_empty_and_ends) {
  in_runtimes([] {
    auto [back, again] = weft::make_channel<int>(weft::unlimited);
    int under_way = 100;
    auto halved = st::merge(st::count(1, 101), again) | st::map([](int v) { return v / 2; });
    again.reset();
    int steps = 0;
    for (int v : halved) {
      ++steps;
      if (v > 0)
        EXPECT_TRUE(back.send(v));
      else if (--under_way == 0)
        back.reset();
    }
    // One step for every bit of every number.
    int expected = 0;
    for (int v = 1; v <= 100; ++v)
      for (int rest = v; rest > 0; rest /= 2) ++expected;
    EXPECT_EQ(steps, expected);
  });
}

// req: CSP-12
TEST(Scenario, readers_that_share_a_stream_get_each_element_once) {
  in_runtimes([] {
    const int elements = static_cast<int>(support::scaled(5'000));
    reader<int> shared = st::count(0, elements);
    std::vector<reader<int>> hands;
    for (int i = 0; i < 8; ++i) hands.push_back(shared | st::map([](int v) { return v; }));
    shared.reset();
    std::vector<int> times(static_cast<std::size_t>(elements));
    for (int v : st::merge(std::move(hands))) ++times[static_cast<std::size_t>(v)];
    for (int t : times) EXPECT_EQ(t, 1);
  });
}

}  // namespace
