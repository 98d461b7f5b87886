// Files over sockets: the exact bytes, ends of files and of peers, and callers that leave before.
#include <weft/net/send_file.hpp>

#include <algorithm>
#include <string>
#include <thread>

#include "io/files.hpp"
#include "io/net.hpp"
#include <weft/net/unix.hpp>

namespace {

using namespace support::usual;
using namespace support;
using file_test::file;
using file_test::hand_overs;
using file_test::letters;
using file_test::scratch;

// A connection that holds only a little, so that whoever sends much has to wait.
tcp_pair narrow_pair() {
  tcp_pair p = connected_pair();
  p.client.set(net::send_buffer{16 << 10});
  p.server.set(net::receive_buffer{16 << 10});
  return p;
}

TEST(SendFile, sends_exactly_the_bytes_that_were_asked_for) {
  const scratch dir;
  const std::string all = letters(300'001);
  const auto path = dir.with("a", all);
  with_sockets([&] {
    const file from = file::open(path);
    const struct {
      std::uint64_t offset, length;
    } parts[] = {{0, net::to_the_end}, {0, 1},       {1, 1}, {4095, 2}, {4097, 65'537},
                 {12'345, 200'000},    {300'000, 1}, {7, 0}};
    for (const auto& part : parts) {
      auto [client, server] = connected_pair();
      client.set(net::send_buffer{16 << 10});  // so that the sender has to wait
      auto sender =
          weft::spawn([&, c = std::move(client)] { return net::send_file(c, from, part.offset, part.length); });
      const std::string expected = all.substr(part.offset, part.length);
      EXPECT_EQ(read_to_end(server), expected) << part.offset << ", " << part.length;
      EXPECT_EQ(sender.join(), expected.size());
    }
  });
}

TEST(SendFile, stops_where_the_file_ends) {
  const scratch dir;
  const auto path = dir.with("a", "0123456789");
  with_sockets([&] {
    const file from = file::open(path);
    auto [client, server] = connected_pair();
    std::error_code why = std::make_error_code(std::errc::io_error);
    EXPECT_EQ(net::send_file(client, from, 8, 100, why), 2u);
    EXPECT_FALSE(why);
    EXPECT_EQ(net::send_file(client, from, 10), 0u);
    EXPECT_EQ(net::send_file(client, from, 1'000'000, 1), 0u);
    EXPECT_EQ(net::send_file(client, from, INT64_MAX), 0u);
    EXPECT_EQ(net::send_file(client, from, std::uint64_t{INT64_MAX} + 1, 1, why), 0u);
    EXPECT_EQ(why, std::errc::invalid_argument);
    client.close();
    EXPECT_EQ(read_to_end(server), "89");
  });
}

TEST(SendFile, goes_to_unix_sockets_and_halves_too) {
  const scratch dir;
  const std::string all = letters(100'000);
  const auto path = dir.with("a", all);
  with_sockets([&] {
    const file from = file::open(path);
    auto [client, server] = net::unix_stream::pair();
    auto halves = std::move(client).split();
    auto sender =
        weft::spawn([&, half = std::move(halves.second)] { EXPECT_EQ(net::send_file(half, from), all.size()); });
    EXPECT_EQ(read_to_end(server), all);
    sender.join();
  });
}

// Without the care for SIGPIPE this ends the process.
TEST(SendFile, to_a_closed_peer_is_an_error_and_no_signal) {
  const scratch dir;
  const auto path = dir.with("a", letters(100'000));
  const auto send_until_it_fails = [&] {
    const file from = file::open(path);
    auto [client, server] = net::unix_stream::pair();
    server.close();
    std::error_code why;
    EXPECT_EQ(net::send_file(client, from, 0, net::to_the_end, why), 0u);
    EXPECT_EQ(why, std::errc::broken_pipe);
    EXPECT_EQ(file_test::message_of([&] { (void)net::send_file(client, from); }, std::errc::broken_pipe)
                  .rfind("send " + path.native() + " to ", 0),
              0u);
  };
  with_sockets(send_until_it_fails);
  send_until_it_fails();  // on this thread
  sigset_t pending;
  ASSERT_EQ(::sigpending(&pending), 0);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
}

// req: IO-9
TEST(SendFile, the_calls_are_made_off_the_worker) {
  const scratch dir;
  const auto path = dir.with("a", letters(100));
  watched_runtime rt(1);
  rt->run([&] {
    const file from = file::open(path);
    auto [client, server] = connected_pair();
    const auto before = hand_overs(rt);
    EXPECT_EQ(net::send_file(client, from), 100u);
    EXPECT_GT(hand_overs(rt), before);
  });
}

// req: IO-2
TEST(SendFile, cancellation_and_time_limits_end_it) {
  const scratch dir;
  const auto path = dir.with("a", letters(8 << 20));
  with_sockets([&] {
    const file from = file::open(path);
    auto [client, server] = narrow_pair();
    std::error_code why;
    const std::uint64_t sent = net::send_file_for(5ms, client, from, 0, net::to_the_end, why);
    EXPECT_EQ(why, std::errc::timed_out);
    EXPECT_LT(sent, 8u << 20);
    client.expires_after(1ms);
    EXPECT_EQ(error_of([&] { (void)net::send_file(client, from); }), std::errc::timed_out);
    client.expires_never();
    EXPECT_EQ(error_of([&] { (void)net::send_file_until(std::chrono::steady_clock::now(), client, from); }),
              std::errc::timed_out);
    auto sender = weft::spawn([&] { (void)net::send_file(client, from, 0, net::to_the_end, why); });
    weft::sleep_for(1ms);  // most often it waits by then
    sender.cancel();
    EXPECT_THROW(sender.join(), weft::task_cancelled);
  });
}

// req: IO-3
TEST(SendFile, a_close_of_the_stream_ends_it) {
  const scratch dir;
  const auto path = dir.with("a", letters(8 << 20));
  with_sockets([&] {
    const file from = file::open(path);
    auto [client, server] = narrow_pair();
    std::error_code why;
    auto sender = weft::spawn([&] { (void)net::send_file(client, from, 0, net::to_the_end, why); });
    char room[1];
    server.read_exactly(room);  // it has begun, and cannot end: nobody reads the rest
    client.close();
    sender.join();
    EXPECT_EQ(why, std::errc::operation_canceled);
  });
}

TEST(SendFile, a_file_that_is_cut_off_meanwhile_ends_there) {
  const scratch dir;
  constexpr std::size_t size = 8 << 20;
  with_sockets([&] {
    const auto path = dir.with("a", letters(size));
    file from = file::open(path, {.write = true});
    auto [client, server] = narrow_pair();
    auto sender = weft::spawn([&, c = std::move(client)] { return net::send_file(c, from, 0, size); });
    char room[1];
    server.read_exactly(room);  // it has begun, and waits for room
    from.truncate(0);
    const std::size_t received = 1 + read_to_end(server).size();
    EXPECT_EQ(sender.join(), received);
    EXPECT_LT(received, size);
  });
}

// req: IO-13
TEST(SendFile, a_file_or_stream_that_is_closed_or_empty_is_told) {
  const scratch dir;
  const auto path = dir.with("a", "x");
  with_sockets([&] {
    file from = file::open(path);
    auto [client, server] = connected_pair();
    EXPECT_THROW((void)net::send_file(client, file()), weft::usage_error);
    EXPECT_THROW((void)net::send_file(net::tcp_stream(), from), weft::usage_error);
    client.close();
    EXPECT_EQ(error_of([&] { (void)net::send_file(client, from); }), std::errc::operation_canceled);
    from.close();
    EXPECT_EQ(error_of([&] { (void)net::send_file(server, from); }), std::errc::bad_file_descriptor);
  });
}

TEST(SendFile, an_outside_thread_sends_too) {
  const scratch dir;
  const std::string all = letters(1 << 20);
  const auto path = dir.with("a", all);
  const std::size_t before = open_descriptors();
  {
    auto [client, server] = narrow_pair();
    std::string got;
    std::thread reader([&, s = std::move(server)] { got = read_to_end(s); });
    EXPECT_EQ(net::send_file(client, file::open(path)), all.size());
    client.close();
    reader.join();
    EXPECT_EQ(got, all);
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
