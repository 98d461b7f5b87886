// Several tasks wait for the same direction of a descriptor: they are served in the order in which they came.
// ctest: uring
#include <string>
#include <vector>

#include "io/faults.hpp"

namespace {

using namespace support::usual;
using namespace support;

TEST(WaitersOrder, the_reader_that_came_first_gets_what_comes_first) {
  with_sockets([] {
    auto pair = connected_pair();
    std::vector<weft::join_handle<char>> readers;
    for (int i = 0; i < 4; ++i)
      readers.push_back(spawn_and_park([&] {
        char c = 0;
        pair.server.read_exactly({&c, 1});
        return c;
      }));
    pair.client.write_all("abcd");
    std::string got;
    for (auto& r : readers) got += r.join();
    EXPECT_EQ(got, "abcd");
  });
}

TEST(WaitersOrder, the_writer_that_came_first_writes_first) {
  with_sockets([] {
    auto pair = connected_pair();
    fill(pair.server);
    std::vector<weft::join_handle<void>> writers;
    for (const char c : {'a', 'b', 'c', 'd'})
      writers.push_back(spawn_and_park([&pair, c] { pair.server.write_all({&c, 1}); }));
    auto ends = weft::spawn([&] {
      for (auto& w : writers) w.join();
      pair.server.shutdown(net::half::write);
    });
    std::string got = read_to_end(pair.client);
    ends.join();
    EXPECT_EQ(got.substr(got.find_first_not_of('.')), "abcd");
  });
}

TEST(WaitersOrder, the_acceptor_that_came_first_gets_the_first_connection) {
  with_sockets([] {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    auto first = spawn_and_park([&] { return listener.accept(); });
    auto second = spawn_and_park([&] { return listener.accept(); });
    const auto one = net::tcp_stream::connect(listener.local_endpoint());
    EXPECT_EQ(first.join().remote_endpoint(), one.local_endpoint());
    const auto other = net::tcp_stream::connect(listener.local_endpoint());
    EXPECT_EQ(second.join().remote_endpoint(), other.local_endpoint());
  });
}

TEST(WaitersOrder, one_that_leaves_takes_nobodys_place) {
  with_sockets([] {
    auto pair = connected_pair();
    const auto read_one = [&] {
      char c = 0;
      pair.server.read_exactly({&c, 1});
      return c;
    };
    auto first = spawn_and_park(read_one);
    auto second = spawn_and_park(read_one);
    auto third = spawn_and_park(read_one);
    second.cancel();
    EXPECT_THROW(second.join(), weft::task_cancelled);
    pair.client.write_all("ac");
    EXPECT_EQ(first.join(), 'a');
    EXPECT_EQ(third.join(), 'c');
  });
}

// ---- arms -------------------------------------------------------------------------------------------------------------

TEST(WaitersOrder, a_select_leaves_nobody_waiting_behind) {
  at_worker_counts_over(io::real_kernel(), [](faulty_runtime& rt) {
    rt.run([&] {
      auto pair = connected_pair();
      auto [out, in] = weft::make_channel<int>();
      auto soon = weft::after(1ms);
      EXPECT_EQ(weft::select(pair.server.readable(), soon, in.on_recv([](int) {})).index(), 1u);
      EXPECT_EQ(rt.waiting(), 0);
      auto sender = weft::spawn([&, o = std::move(out)] { (void)o.send(1); });
      EXPECT_EQ(weft::select(pair.server.readable(), pair.server.readable(), in.on_recv([](int) {})).index(), 2u);
      EXPECT_EQ(rt.waiting(), 0) << "the same descriptor twice counts twice, in and out";
      sender.join();
      pair.client.write_all("x");
      weft::select(pair.server.readable(), pair.server.readable());
      EXPECT_EQ(rt.waiting(), 0);
    });
  });
}

}  // namespace
