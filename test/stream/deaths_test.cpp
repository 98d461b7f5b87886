// Either side's death ends every combinator: nothing is left running (in_runtimes waits for it), nothing leaks.
#include <functional>
#include <string>

#include "stream/support.hpp"

namespace {

using namespace std::chrono_literals;
namespace st = weft::stream;
using stream_test::counted;
using stream_test::failure;
using stream_test::in_runtimes;
using weft::reader;
using weft::writer;

struct subject {
  const char* name;
  std::function<reader<counted>(reader<counted>)> attach;
  bool ends_with_input = true;  // latch goes on offering the last element
};

// Each lets at least some of the elements through as counted again.
std::vector<subject> subjects() {
  const auto same = [](counted c) { return c; };
  return {
      {"map", [=](auto in) { return in | st::map(same); }},
      {"where", [](auto in) { return in | st::where([](const counted&) { return true; }); }},
      {"take", [](auto in) { return in | st::take(1'000'000); }},
      {"buffer", [](auto in) { return in | st::buffer(3); }},
      {"unlimited buffer", [](auto in) { return in | st::buffer(weft::unlimited); }},
      {"tee", [](auto in) { return in | st::tee(st::consumer<counted>(st::blackhole())); }},
      {"tee to a deaf one",
       [](auto in) { return in | st::tee(st::consumer<counted>([](reader<counted>& side) { (void)side.recv(); })); }},
      {"latch", [](auto in) { return in | st::latch(); }, false},
      {"killswitch",
       [](auto in) {
         auto [alive, keepalive] = weft::make_channel<int>();
         auto out = in | st::killswitch(keepalive);
         // The switch lives as long as somebody reads.
         weft::spawn([my_alive = std::move(alive)] { (void)weft::prialt(~my_alive); }).detach();
         return out;
       }},
      {"enumerate",
       [](auto in) {
         return in | st::enumerate() | st::map([](std::pair<std::size_t, counted> p) { return p.second; });
       }},
      {"batch", [](auto in) { return in | st::batch(2) | st::map([](std::vector<counted> b) { return b.front(); }); }},
      {"batch in time",
       [](auto in) { return in | st::batch(2, 1h) | st::map([](std::vector<counted> b) { return b.front(); }); }},
      {"window",
       [](auto in) { return in | st::window(2) | st::map([](std::vector<counted> b) { return b.front(); }); }},
      {"quantize",
       [](auto in) {
         return in | st::map([](counted) { return 1; }) | st::quantize(2) | st::map([](int q) { return counted(q); });
       }},
      {"quantize by a stream",
       [](auto in) {
         return in | st::map([](counted) { return 1; }) | st::quantize(st::cycle(std::vector{1, 2})) |
                st::map([](int q) { return counted(q); });
       }},
      {"chain", [](auto in) { return in | st::chain(st::enumerate(std::vector<counted>(3))); }},
      {"merge", [](auto in) { return in | st::merge(st::enumerate(std::vector<counted>(3))); }},
      {"zip",
       [](auto in) {
         return in | st::zip(st::count_forever(0)) |
                st::map([](std::tuple<counted, int> both) { return std::get<counted>(both); });
       }},
      {"debounce", [](auto in) { return in | st::debounce(1us); }},
      {"throttle", [](auto in) { return in | st::throttle(1us); }},
      {"parallel_map", [=](auto in) { return in | st::parallel_map(3, same); }},
      {"parallel_map_unordered", [=](auto in) { return in | st::parallel_map_unordered(3, same); }},
      {"rpc",
       [](auto in) {
         return in | st::map([](counted c) { return std::tuple(c); }) | st::rpc([](counted c) { return c; });
       }},
      {"a composition", [=](auto in) { return in | (st::map(same) | st::buffer(2) | st::map(same)); }},
  };
}

template <class Body>
void for_each_subject(Body body) {
  for (const subject& s : subjects()) {
    SCOPED_TRACE(s.name);
    in_runtimes([&] { body(s); });
    EXPECT_EQ(counted::alive.load(), 0);
  }
}

// req: CSP-12
TEST(Deaths, a_stage_that_waits_for_an_element_ends_when_nobody_reads) {
  for_each_subject([](const subject& s) {
    auto [up, in] = weft::make_channel<counted>();
    auto last = s.attach(std::move(in));
    last.reset();
    (void)weft::prialt(~up);  // the death has come up here: the stage let go of its input
    EXPECT_FALSE(up.send(counted(1)));
  });
}

// req: CSP-12
TEST(Deaths, a_stage_that_waits_to_send_ends_when_nobody_reads) {
  for_each_subject([](const subject& s) {
    auto [up, in] = weft::make_channel<counted>();
    auto last = s.attach(std::move(in));
    auto feeding = weft::spawn([my_up = std::move(up)]() mutable {
      for (int i = 0; my_up.send(counted(i)); ++i) {}
    });
    (void)last.recv();
    last.reset();
    feeding.join();
  });
}

// req: CSP-12
TEST(Deaths, a_stage_ends_when_its_input_has_ended_and_with_it_the_output) {
  for_each_subject([](const subject& s) {
    auto last = s.attach(st::enumerate(std::vector<counted>(10)));
    if (!s.ends_with_input) {
      EXPECT_TRUE(last.recv());
      return;
    }
    std::size_t received = 0;
    while (last.recv()) ++received;
    EXPECT_GT(received, 0u);
  });
}

// req: CSP-12
TEST(Deaths, a_stage_whose_input_ends_while_it_waits_ends_too) {
  for_each_subject([](const subject& s) {
    if (!s.ends_with_input) return;
    auto [up, in] = weft::make_channel<counted>();
    auto last = s.attach(std::move(in));
    up.reset();
    while (last.recv()) {}
  });
}

// req: CSP-12
TEST(Deaths, a_stage_passes_on_what_its_input_failed_with) {
  for_each_subject([](const subject& s) {
    auto last = s.attach(st::producer<counted>([](writer<counted>& out) {
      for (int i = 0; i < 4; ++i) EXPECT_TRUE(out.send(counted(i)));
      throw failure("source");
    }));
    EXPECT_THROW(
        {
          while (last.recv()) {}
        },
        failure);
  });
}

// Nobody is left whom the failure of the input would concern.
// req: CSP-12
TEST(Deaths, a_buffer_that_nobody_reads_any_more_returns_though_its_input_has_failed) {
  in_runtimes([] {
    auto [up, in] = weft::make_channel<counted>(2);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(up.send(counted(i)));
    up.close(std::make_exception_ptr(failure("source")));
    auto [out, last] = weft::make_channel<counted>();
    auto running = weft::spawn(
        [from = std::move(in), to = std::move(out)]() mutable { st::buffer(std::move(from), std::move(to), 3); });
    support::until(
        [&, &l = last] { return l.statistics().waiting_senders == 1; });  // it holds all, and offers the first
    last.reset();
    EXPECT_NO_THROW(running.join());
  });
  EXPECT_EQ(counted::alive.load(), 0);
}

// req: CSP-12
TEST(Deaths, stages_before_a_writer_end_from_either_side) {
  const auto same = [](counted c) { return c; };
  const auto stage = st::map(same) | st::buffer(2) | st::map(same);
  in_runtimes([&] {
    auto [out, in] = weft::make_channel<counted>();
    auto first = stage | std::move(out);
    in.reset();
    (void)weft::prialt(~first);
    EXPECT_FALSE(first.send(counted(1)));
  });
  in_runtimes([&] {
    auto [out, in] = weft::make_channel<counted>();
    auto first = stage | std::move(out);
    EXPECT_TRUE(first.send(counted(1)));
    first.close(std::make_exception_ptr(failure("source")));
    EXPECT_TRUE(in.recv());
    EXPECT_THROW((void)in.recv(), failure);
  });
  EXPECT_EQ(counted::alive.load(), 0);
}

// req: CSP-12
TEST(Deaths, killswitch_ends_when_the_switch_is_let_go) {
  in_runtimes([] {
    auto [alive, keepalive] = weft::make_channel<int>();
    auto out = st::count_forever(0) | st::killswitch(std::move(keepalive));
    for (int i = 0; i < 10; ++i) EXPECT_EQ(out.recv(), i);
    alive.reset();
    std::size_t rest = 0;  // what was under way
    while (out.recv()) ++rest;
    EXPECT_LE(rest, 1u);
  });
}

// req: CSP-12
TEST(Deaths, mute_ends_when_nobody_reads) {
  in_runtimes([] {
    auto in = st::mute<int>();
    EXPECT_EQ(in.try_recv(), std::nullopt);
    EXPECT_FALSE(in.is_closed());
  });
}

// req: CSP-12
TEST(Deaths, deaf_takes_nothing_and_ends_when_nobody_can_send) {
  in_runtimes([] {
    auto out = st::consumer<int>(st::deaf());
    EXPECT_EQ(out.send_for(1, 1ms).status(), weft::send_status::timed_out);
    EXPECT_FALSE(out.is_closed());
  });
}

// req: CSP-12
TEST(Deaths, sources_end_when_nobody_reads) {
  in_runtimes([] {
    EXPECT_EQ(st::count_forever(7).recv(), 7);
    EXPECT_EQ(st::count(0, 10, 1, true).recv(), 0);
    EXPECT_EQ(st::cycle(std::vector{5}).recv(), 5);
    EXPECT_EQ(st::enumerate(std::vector{6, 7}).recv(), 6);
  });
}

}  // namespace
