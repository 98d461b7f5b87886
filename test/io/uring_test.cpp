// Receiving in batches by io_uring (io/batcher.hpp): what is in a batch, and what may happen to its readers meanwhile.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "io/batches.hpp"
#include "io/reactor.hpp"
#include "sched/runtime_access.hpp"

namespace {

using namespace support::usual;
using namespace support;

constexpr std::size_t many = 16;

// ---- the choice ------------------------------------------------------------------------------------------------------

bool receives_in_batches(const weft::runtime_options& o) {
  weft::runtime rt(o);
  return dynamic_cast<io::reactor&>(*weft::sched::core_of(rt).polling().polled()).receives_in_batches();
}

// req: BZ-12 IO-6
TEST(Uring, the_option_chooses_the_backend) {
  const environment unset("WEFT_IO", nullptr);
  EXPECT_TRUE(receives_in_batches({.workers = 1, .io = weft::io_backend::uring}));
  EXPECT_FALSE(receives_in_batches({.workers = 1, .io = weft::io_backend::epoll}));
  EXPECT_FALSE(receives_in_batches({.workers = 1}));
}

// req: BZ-12 IO-6
TEST(Uring, the_environment_chooses_where_the_option_does_not) {
  const environment set("WEFT_IO", "uring");
  EXPECT_TRUE(receives_in_batches({.workers = 1}));
  EXPECT_FALSE(receives_in_batches({.workers = 1, .io = weft::io_backend::epoll}));
  {
    const environment other("WEFT_IO", "epoll");
    EXPECT_FALSE(receives_in_batches({.workers = 1}));
    EXPECT_TRUE(receives_in_batches({.workers = 1, .io = weft::io_backend::uring}));
  }
  for (const char* usual : {"auto", ""}) {
    const environment other("WEFT_IO", usual);
    testing::internal::CaptureStderr();
    EXPECT_FALSE(receives_in_batches({.workers = 1}));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  }
}

// req: CC-13 IO-6
TEST(Uring, a_bad_value_of_the_variable_is_named_in_one_line_and_taken_as_auto) {
  const environment set("WEFT_IO", "iocp");
  testing::internal::CaptureStderr();
  EXPECT_FALSE(receives_in_batches({.workers = 1}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "weft: WEFT_IO=iocp is none of auto, epoll and uring; taken as auto\n");
}

// ---- what is in a batch ----------------------------------------------------------------------------------------------

// req: BZ-12 IO-6
TEST(Uring, many_that_can_read_at_once_are_received_for_with_one_call) {
  SKIP_WITHOUT_IO_URING();
  with_batches([] {
    crowd c(many);
    auto readers = c.wait_in(read_once);
    for (std::size_t i = 0; i < many; ++i) c[i].client.write_all(std::string(i + 1, static_cast<char>('a' + i)));
    rings.release_events();
    for (std::size_t i = 0; i < many; ++i) EXPECT_EQ(readers[i].join(), std::string(i + 1, static_cast<char>('a' + i)));
    EXPECT_EQ(rings.enters, 1);
    EXPECT_EQ(rings.in_batches, static_cast<int>(many));
    EXPECT_EQ(rings.one_by_one, 0);
  });
}

// A poll brings at most 128 events, each of which may wake a reader and a writer.
// req: BZ-12 IO-6
TEST(Uring, more_than_fit_into_a_turn_come_in_several_batches) {
  SKIP_WITHOUT_IO_URING();
  with_batches([] {
    crowd c(200);
    auto readers = c.wait_in(read_once);
    c.send("x");
    unsigned largest = 0;
    rings.shortened = [&](unsigned n) { return largest = std::max(largest, n), n; };
    rings.release_events();
    for (auto& r : readers) EXPECT_EQ(r.join(), "x");
    EXPECT_EQ(largest, io::batcher::most);
    EXPECT_EQ(rings.in_batches, 200);
    EXPECT_EQ(rings.enters, 2);
  });
}

// req: IO-6
TEST(Uring, few_receive_for_themselves) {
  if (const char* io = std::getenv("WEFT_IO"); io != nullptr && io == std::string("uring"))
    GTEST_SKIP() << "every reader is a batch then (support/process.cpp)";
  with_batches([] {
    crowd c(7);
    auto readers = c.wait_in(read_once);
    c.send("few");
    rings.release_events();
    for (auto& r : readers) EXPECT_EQ(r.join(), "few");
    EXPECT_EQ(rings.enters, 0);
    EXPECT_EQ(rings.one_by_one, static_cast<int>(c.size()));
  });
}

// req: IO-6
TEST(Uring, readers_with_a_time_limit_are_received_for_too) {
  SKIP_WITHOUT_IO_URING();
  with_batches([] {
    crowd c(many);
    auto readers = c.wait_in([](const net::tcp_stream& s) {
      char room[64];
      return std::string(room, s.read_some_for(60s, room));
    });
    c.send("in time");
    rings.release_events();
    for (auto& r : readers) EXPECT_EQ(r.join(), "in time");
    EXPECT_EQ(rings.in_batches, static_cast<int>(many));
  });
}

// req: IO-6
TEST(Uring, who_only_asks_or_reads_much_is_not_received_for) {
  with_batches([] {
    crowd c(many);
    auto arms = c.wait_in([](const net::tcp_stream& s) {
      weft::select(s.on_readable([] {}));
      return read_once(s);
    });
    c.send("asked");
    rings.release_events();
    for (auto& a : arms) EXPECT_EQ(a.join(), "asked");
    auto readers = c.wait_in([](const net::tcp_stream& s) {
      std::string room(64 << 10, '\0');
      room.resize(s.read_some({room.data(), room.size()}));
      return room;
    });
    c.send("much");
    rings.release_events();
    for (auto& r : readers) EXPECT_EQ(r.join(), "much");
    EXPECT_EQ(rings.enters, 0);
  });
}

// req: IO-6
TEST(Uring, a_socket_of_another_runtime_with_another_kernel_is_left_to_its_reader) {
  with_batches([] {
    faulty_runtime other(1, io::real_kernel());
    std::vector<tcp_pair> pairs;
    for (std::size_t i = 0; i < many; ++i) pairs.push_back(other.run([] { return connected_pair(); }));
    rings.hold_events();
    std::vector<weft::join_handle<std::string>> readers;
    for (tcp_pair& p : pairs) readers.push_back(spawn_and_park([s = &p.server] { return read_once(*s); }));
    for (tcp_pair& p : pairs) p.client.write_all("x");
    rings.release_events();
    for (auto& r : readers) EXPECT_EQ(r.join(), "x");
    EXPECT_EQ(rings.enters, 0);
  });
}

// ---- outcomes --------------------------------------------------------------------------------------------------------

// req: IO-6
TEST(Uring, a_batch_brings_ends_of_streams_and_resets) {
  SKIP_WITHOUT_IO_URING();
  with_batches([] {
    crowd c(many);
    auto readers = c.wait_in([](const net::tcp_stream& s) {
      char room[8];
      std::error_code why;
      const std::size_t n = s.read_some(room, why);
      return std::pair(n, why);
    });
    for (std::size_t i = 0; i < many; ++i) {
      if (i % 2 == 0)
        c[i].client.close();
      else
        reset(c[i].client);
    }
    rings.release_events();
    for (std::size_t i = 0; i < many; ++i) {
      const auto [n, why] = readers[i].join();
      EXPECT_EQ(n, 0u);
      EXPECT_EQ(why, i % 2 == 0 ? std::error_code() : std::make_error_code(std::errc::connection_reset)) << i;
    }
    EXPECT_EQ(rings.one_by_one, 0);
  });
}

// req: IO-5 IO-6
TEST(Uring, a_batch_that_finds_nothing_lets_its_readers_wait_on) {
  SKIP_WITHOUT_IO_URING();
  with_batches([] {
    crowd c(many);
    auto readers = c.wait_in(read_once);
    rings.before_enter = [&] {
      if (rings.enters == 1) c.steal();
    };
    c.send("stolen");
    rings.release_events();
    until([] { return rings.enters == 1 && waiting_tasks() == static_cast<std::int64_t>(many); });
    EXPECT_EQ(rings.one_by_one, 0) << "they know that there is nothing";
    c.send("kept");
    for (auto& r : readers) EXPECT_EQ(r.join(), "kept");
  });
}

// The bytes come after the call that found nothing, and before its reader knows.
// req: IO-5 IO-6
TEST(Uring, a_batch_that_finds_nothing_loses_no_edge) {
  SKIP_WITHOUT_IO_URING();
  with_batches([] {
    crowd c(many);
    auto readers = c.wait_in(read_once);
    rings.before_enter = [&] {
      if (rings.enters == 1) c.steal();
    };
    rings.after_enter = [&] {
      if (rings.enters == 1) c.send("late");
    };
    c.send("stolen");
    rings.release_events();
    for (auto& r : readers) EXPECT_EQ(r.join(), "late");
  });
}

// req: IO-6
TEST(Uring, a_batch_serves_two_readers_of_one_socket_in_their_order) {
  SKIP_WITHOUT_IO_URING();
  with_batches([] {
    crowd c(many);
    const auto read_one = [](const net::tcp_stream& s) {
      char one[1];
      s.read_exactly(one);
      return one[0];
    };
    auto first = c.wait_in(read_one);
    auto second = c.wait_in(read_one);
    c.send("ab");
    rings.release_events();
    for (auto& r : first) EXPECT_EQ(r.join(), 'a');
    for (auto& r : second) EXPECT_EQ(r.join(), 'b');
    EXPECT_GE(rings.enters, 1);
  });
}

// ---- what comes too late ---------------------------------------------------------------------------------------------

// Does it on another thread in the middle of the batch, once.
template <class F>
std::function<void()> meanwhile(F f) {
  return [f] {
    if (rings.enters == 1) std::thread(f).join();
  };
}

// req: IO-2 IO-6
TEST(Uring, a_batch_wins_over_a_cancellation_that_comes_after_the_claim) {
  SKIP_WITHOUT_IO_URING();
  for (const bool is_before : {true, false})
    with_batches([is_before] {
      crowd c(many);
      auto readers = c.wait_in(read_once);
      (is_before ? rings.before_enter : rings.after_enter) = meanwhile([&] {
        for (auto& r : readers) r.cancel();
      });
      c.send("mine");
      rings.release_events();
      for (auto& r : readers) EXPECT_EQ(r.join(), "mine");
    });
}

// req: IO-3 IO-6
TEST(Uring, a_batch_wins_over_a_close_and_the_number_is_given_back_afterwards) {
  SKIP_WITHOUT_IO_URING();
  for (const bool is_before : {true, false})
    with_batches([is_before] {
      crowd c(many);
      auto readers = c.wait_in(read_once);
      (is_before ? rings.before_enter : rings.after_enter) = meanwhile([&] {
        for (std::size_t i = 0; i < many; ++i) {
          const int fd = c[i].server.native_handle();
          c[i].server.close();
          EXPECT_NE(::fcntl(fd, F_GETFD), -1) << "the number is still taken";
        }
      });
      c.send("mine");
      rings.release_events();
      for (auto& r : readers) EXPECT_EQ(r.join(), "mine");
    });
}

// req: IO-2 IO-6
TEST(Uring, a_batch_wins_over_a_deadline_that_comes_after_the_claim) {
  SKIP_WITHOUT_IO_URING();
  with_batches([] {
    crowd c(many);
    base::atomic<int> late{0};
    auto readers = c.wait_in([&](const net::tcp_stream& s) {
      char room[8];
      std::error_code why;
      const std::size_t n = s.read_some_for(200ms, room, why);
      if (why == std::errc::timed_out) ++late;  // before the claim, on a machine that is busy
      return std::string(room, n);
    });
    rings.before_enter = meanwhile([] { std::this_thread::sleep_for(250ms); });
    c.send("mine");
    rings.release_events();
    int got = 0;
    for (auto& r : readers) got += r.join() == "mine" ? 1 : 0;
    EXPECT_EQ(got + late, static_cast<int>(many));
    EXPECT_GE(got, rings.in_batches.load());
  });
}

// ---- the child of a fork ---------------------------------------------------------------------------------------------

void one_batch() {
  crowd c(many);
  auto readers = c.wait_in(read_once);
  c.send("x");
  rings.release_events();
  for (auto& r : readers) EXPECT_EQ(r.join(), "x");
}

// req: IO-6
TEST(UringNoTsan, a_batch_of_the_parent_and_one_of_its_forked_child_do_not_meet) {
  SKIP_WITHOUT_IO_URING();
  with_batches([] {
    one_batch();
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      rings.enters = 0;
      faulty_runtime(1, ring_kernel(), io::reactor::batches::and_tell).run(one_batch);
      ::_exit(rings.enters == 1 && !testing::Test::HasFailure() ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    rings.enters = 0;
    one_batch();
    EXPECT_EQ(rings.enters, 1);
  });
}

}  // namespace
