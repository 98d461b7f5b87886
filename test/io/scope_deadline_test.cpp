// The deadline of a scope, while its tasks wait for the network.
// ctest: uring
#include <string>

#include "io/fake_names.hpp"
#include "io/faults.hpp"
#include "io/resolve.hpp"
#include <weft/descriptor.hpp>

namespace {

using namespace support::usual;
using namespace support;
using clock = std::chrono::steady_clock;

// f() waits until the deadline of its scope comes, and not a moment less.
template <class F>
void ends_at_its_deadline(F f) {
  int cancelled = 0;
  const auto begin = clock::now();
  const bool in_time = weft::with_timeout(3ms, [&] {
    try {
      f();
    } catch (const weft::cancelled&) {
      ++cancelled;
      throw;
    }
  });
  EXPECT_FALSE(in_time);
  EXPECT_EQ(cancelled, 1);
  EXPECT_GE(clock::now() - begin, 3ms) << "never early";
}

// req: IO-2
TEST(ScopeDeadline, ends_a_connect_that_nobody_answers) {
  with_sockets([] {
    const net::tcp_listener deaf(net::endpoint::loopback(0));
    drop_packets(deaf.native_handle());
    ends_at_its_deadline([&] { (void)net::tcp_stream::connect(deaf.local_endpoint()); });
    ends_at_its_deadline([&] {
      std::error_code why;
      (void)net::tcp_stream::connect(deaf.local_endpoint(), why);  // cancellation is thrown in both forms
    });
  });
}

// req: IO-2
TEST(ScopeDeadline, ends_an_accept_a_read_a_write_and_a_wait) {
  with_sockets([] {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    ends_at_its_deadline([&] { (void)listener.accept(); });
    auto pair = connected_pair();
    char room[8];
    ends_at_its_deadline([&] { (void)pair.server.read_some(room); });
    ends_at_its_deadline([&] { pair.server.read_exactly(room); });
    ends_at_its_deadline([&] { weft::wait_readable(pair.server.native_handle()); });
    pair.client.write_all("kept");
    pair.server.read_exactly({room, 4});
    EXPECT_EQ(std::string(room, 4), "kept") << "and the stream is as it was";
    fill(pair.server);
    ends_at_its_deadline([&] { pair.server.write_all("x"); });
    ends_at_its_deadline([&] { weft::select(pair.server.readable(), pair.server.writable()); });
  });
}

// req: IO-10
TEST(ScopeDeadline, ends_a_look_up_whose_memory_survives) {
  const io_test::fake_names names;
  {
    watched_runtime rt({.workers = 2});
    rt->run([&] {
      names.close();
      ends_at_its_deadline(
          [&] { (void)io::resolve(names.kernel(), "7.test", 80, {}, std::source_location::current()); });
      until([&] { return names.inside() == 1; });
      names.open();
    });
  }
  EXPECT_EQ(names.lists_out(), 0);
}

TEST(ScopeDeadline, that_is_moved_earlier_ends_a_read_at_the_new_time) {
  with_sockets([] {
    auto pair = connected_pair();
    int cancelled = 0;
    weft::with_scope([&](weft::scope& s) {
      s.cancel_after(1h);
      s.spawn([&] {
        char room[8];
        cancelled += throws_cancelled([&] { (void)pair.server.read_some(room); }) ? 1 : 0;
      });
      s.spawn([&] { s.cancel_after(2ms); });
    });
    EXPECT_EQ(cancelled, 1);
  });
}

TEST(ScopeDeadline, that_is_moved_later_does_not_end_a_read_before) {
  with_sockets([] {
    auto pair = connected_pair();
    const auto first = clock::now() + 40ms;
    const auto later = first + 20ms;
    bool was_moved_in_time = false;
    clock::time_point ended;
    weft::with_scope([&](weft::scope& s) {
      s.cancel_at(first);
      auto reader = s.spawn([&] {
        char room[8];
        const bool cancelled = throws_cancelled([&] { (void)pair.server.read_some(room); });
        ended = clock::now();
        EXPECT_TRUE(cancelled);
      });
      for (int i = 0; i < 10; ++i) s.cancel_at(later - std::chrono::milliseconds(i % 2));
      s.cancel_at(later);
      was_moved_in_time = clock::now() < first;
    });
    if (was_moved_in_time) {
      EXPECT_GE(ended, later);
    }
  });
}

}  // namespace
