// Unix streams and listeners: files, abstract names, queues that are full, and names that cannot be used.
// ctest: uring
#include <weft/net/unix.hpp>

#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "io/faults.hpp"
#include "io/files.hpp"

namespace {

using namespace support::usual;
using namespace support;
using file_test::scratch;

void talk(const net::unix_listener& listener, const net::endpoint& at) {
  auto client = weft::spawn([&] {
    const auto c = net::unix_stream::connect(at);
    c.write_all("question");
    c.shutdown(net::half::write);
    return read_to_end(c);
  });
  {
    const auto s = listener.accept();
    EXPECT_EQ(read_to_end(s), "question");
    s.write_all("answer");
  }
  EXPECT_EQ(client.join(), "answer");
}

TEST(UnixStream, a_file_that_a_dead_listener_left_is_in_the_way_until_it_is_removed) {
  with_sockets([] {
    const scratch dir;
    const auto at = net::endpoint::unix_path((dir / "socket").native());
    { const net::unix_listener first(at); }
    EXPECT_TRUE(std::filesystem::exists(dir / "socket"));
    EXPECT_EQ(error_of([&] { (void)net::unix_stream::connect(at); }), std::errc::connection_refused);
    EXPECT_EQ(error_of([&] { const net::unix_listener second(at); }), std::errc::address_in_use);
    std::filesystem::remove(dir / "socket");
    EXPECT_EQ(error_of([&] { (void)net::unix_stream::connect(at); }), std::errc::no_such_file_or_directory);
    const net::unix_listener third(at);
    talk(third, at);
  });
}

TEST(UnixStream, an_abstract_name_is_free_again_at_once) {
  with_sockets([] {
    const auto at = net::endpoint::unix_abstract("weft-test-" + std::to_string(::getpid()));
    for (int i = 0; i < 3; ++i) {
      const net::unix_listener listener(at);
      talk(listener, at);
    }
  });
}

// req: IO-13
TEST(UnixStream, names_that_cannot_be_used_are_refused) {
  with_sockets([] {
    EXPECT_EQ(error_of([] { (void)net::endpoint::unix_path(std::string(108, 'x')); }), std::errc::filename_too_long);
    EXPECT_THROW((void)net::endpoint::unix_path(""), std::invalid_argument);
    EXPECT_THROW((void)net::unix_stream::connect(net::endpoint::loopback(1)), weft::usage_error);
    EXPECT_THROW((void)net::unix_stream::connect(net::endpoint()), weft::usage_error);
    EXPECT_THROW(net::unix_listener(net::endpoint::loopback(1)), weft::usage_error);
    EXPECT_EQ(error_of([] { const net::unix_listener l(net::endpoint::unix_path("/nowhere/socket")); }),
              std::errc::no_such_file_or_directory);
  });
}

// Linux refuses some of them for sockets of this family.
TEST(UnixStream, a_listener_sets_no_option_of_internet_sockets) {
  static io::kernel_calls calls = io::real_kernel();
  calls.setsockopt = [](int, int, int, const void*, socklen_t) noexcept {
    errno = EOPNOTSUPP;
    return -1;
  };
  with_kernel(calls, [] {
    const auto at = net::endpoint::unix_abstract("weft-test-options-" + std::to_string(::getpid()));
    const net::unix_listener listener(at, {.reuse_port = true});
    talk(listener, at);
  });
}

// The kernel tells nobody when there is room in the queue of a listener.
TEST(UnixStream, a_connect_waits_while_the_queue_of_the_listener_is_full) {
  with_sockets([] {
    const auto at = net::endpoint::unix_abstract("weft-test-full-" + std::to_string(::getpid()));
    const net::unix_listener listener(at, {.backlog = 0});
    std::vector<weft::join_handle<void>> clients;
    for (int i = 0; i < 4; ++i)
      clients.push_back(weft::spawn([&] {
        const auto c = net::unix_stream::connect(at);
        c.write_all("x");
      }));
    for (int i = 0; i < 4; ++i) {
      const auto s = listener.accept();
      EXPECT_EQ(read_to_end(s), "x");
    }
    for (auto& c : clients) c.join();
    const auto first = net::unix_stream::connect(at);
    auto waits = spawn_and_park([&] { (void)net::unix_stream::connect(at); });
    waits.cancel();
    EXPECT_THROW(waits.join(), weft::task_cancelled);
  });
}

// req: IO-3
TEST(UnixStream, a_peer_that_goes_ends_what_waits) {
  with_sockets([] {
    auto [one, other] = net::unix_stream::pair();
    auto reader = spawn_and_park([&s = one] { return read_to_end(s); });
    other.write_all("last");
    other.close();
    EXPECT_EQ(reader.join(), "last");
    EXPECT_EQ(error_of([&s = one] { s.write_all("x"); }), std::errc::broken_pipe);
    auto [a, b] = net::unix_stream::pair();
    const std::string much(std::size_t{8} << 20, 'x');
    auto writer = spawn_and_park([&, &s = a] { return error_of([&] { s.write_all(much); }); });
    b.close();
    const std::error_code why = writer.join();
    EXPECT_TRUE(why == std::errc::broken_pipe || why == std::errc::connection_reset) << why.message();
  });
}

}  // namespace
