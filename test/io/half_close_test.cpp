// One half of a connection ends, and the other one goes on.
// ctest: uring
#include <string>

#include "io/faults.hpp"
#include <weft/net/unix.hpp>

namespace {

using namespace support::usual;
using namespace support;

// `asker` says that it is done, and reads the answer.
template <class Stream>
void answers_after_the_end(Stream asker, Stream answerer) {
  const std::string much = pattern(std::size_t{1} << 19);
  auto other = weft::spawn([&, s = std::move(answerer)] {
    EXPECT_EQ(read_to_end(s), "question");
    char room[1];
    EXPECT_EQ(s.read_some(room), 0u) << "the end stays";
    s.write_all(much);  // more than the buffers hold: it waits for room although the other half has ended
    s.shutdown(net::half::write);
    EXPECT_EQ(s.read_some(room), 0u);
  });
  asker.write_all("question");
  asker.shutdown(net::half::write);
  EXPECT_EQ(error_of([&] {
              for (;;) asker.write_all("more");
            }),
            std::errc::broken_pipe);
  EXPECT_EQ(read_to_end(asker), much);
  other.join();
}

TEST(HalfClose, the_client_ends_first_and_reads_the_answer) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    answers_after_the_end(std::move(client), std::move(server));
  });
}

TEST(HalfClose, the_server_ends_first_and_reads_the_answer) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    answers_after_the_end(std::move(server), std::move(client));
  });
}

TEST(HalfClose, unix_sockets_do_the_same) {
  with_sockets([] {
    auto [one, other] = net::unix_stream::pair();
    answers_after_the_end(std::move(one), std::move(other));
  });
}

TEST(HalfClose, a_reader_that_waits_sees_the_end) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    auto reader = spawn_and_park([&s = server] { return read_to_end(s); });
    client.shutdown(net::half::write);
    EXPECT_EQ(reader.join(), "");
    server.write_all("still");
    server.close();
    EXPECT_EQ(read_to_end(client), "still");
  });
}

TEST(HalfClose, a_reader_that_waits_sees_the_end_that_its_own_side_makes) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    auto reader = spawn_and_park([&s = server] { return read_to_end(s); });
    server.shutdown(net::half::read);
    EXPECT_EQ(reader.join(), "");
    server.write_all("still");
    server.shutdown(net::half::write);
    EXPECT_EQ(read_to_end(client), "still");
  });
}

TEST(HalfClose, a_writer_that_waits_is_told_when_its_own_side_ends) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    fill(server);
    auto writer = spawn_and_park([&s = server] { return error_of([&] { s.write_all("x"); }); });
    server.shutdown(net::half::write);
    EXPECT_EQ(writer.join(), std::errc::broken_pipe);
  });
}

TEST(HalfClose, ending_what_has_ended_is_harmless_or_told) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    client.shutdown(net::half::write);
    client.shutdown(net::half::write);
    client.shutdown(net::half::both);
    EXPECT_EQ(read_to_end(server), "");
    reset(client);
    std::error_code why;
    server.shutdown(net::half::both, why);
    EXPECT_TRUE(!why || why == std::errc::not_connected) << why.message();
  });
}

TEST(HalfClose, both_halves_of_both_ends_finish_at_once) {
  with_sockets([] {
    for (int i = 0; i < 50; ++i) {
      auto [client, server] = connected_pair();
      auto one = weft::spawn([s = std::move(server)] {
        s.write_all("from the server");
        s.shutdown(net::half::write);
        return read_to_end(s);
      });
      client.write_all("from the client");
      client.shutdown(net::half::write);
      EXPECT_EQ(read_to_end(client), "from the server");
      EXPECT_EQ(one.join(), "from the client");
    }
  });
}

}  // namespace
