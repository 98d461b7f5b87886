// io_uring is denied, or fails later: epoll does it alone, one line says so, and nothing is lost (io/batcher.hpp).
#include <cstring>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "io/batches.hpp"

namespace {

using namespace support::usual;
using namespace support;
using batches = io::reactor::batches;

constexpr std::size_t many = 16;

// Rounds in which all connections get something to read at once.
void rounds(crowd& c, int count) {
  for (int i = 0; i < count; ++i) {
    auto readers = c.wait_in(read_once);
    c.send("round " + std::to_string(i));
    rings.release_events();
    for (auto& r : readers) EXPECT_EQ(r.join(), "round " + std::to_string(i));
  }
}

// What a runtime says on stderr whose kernel is prepared by prepare().
template <class Prepare>
std::string said_with(Prepare prepare, batches how = batches::and_tell) {
  testing::internal::CaptureStderr();
  with_batches(
      [&] {
        prepare();
        crowd c(many);
        rounds(c, 3);
      },
      how);
  return testing::internal::GetCapturedStderr();
}

std::string twice(const std::string& line) { return line + line; }  // with_batches makes two runtimes

// req: IO-6
TEST(UringFaults, a_ring_that_is_denied_at_the_setup_is_not_asked_for_again) {
  for (const int error : {EPERM, ENOSYS, EINVAL, ENOMEM, EMFILE}) {
    const std::string said = said_with([error] { rings.setup.play({error}); });
    EXPECT_EQ(said, twice("weft: io_uring cannot be used (io_uring_setup: " + std::string(std::strerror(error)) +
                          "); continuing with epoll alone\n"));
    EXPECT_EQ(rings.setup.calls(), 1u);
    EXPECT_EQ(rings.enters, 0);
    EXPECT_EQ(rings.one_by_one, static_cast<int>(many)) << "in the last round";
  }
}

// req: IO-6
TEST(UringFaults, a_ring_that_cannot_be_mapped_leaves_nothing_behind) {
  SKIP_WITHOUT_IO_URING();
  for (const std::vector<int>& errors : {std::vector{ENOMEM}, std::vector{0, ENOMEM}}) {
    const std::string said = said_with([&] { rings.map.play(errors); });
    EXPECT_EQ(said, twice("weft: io_uring cannot be used (io_uring_setup: Cannot allocate memory); continuing with "
                          "epoll alone\n"));
    EXPECT_EQ(rings.enters, 0);
  }
}

// req: IO-6
TEST(UringFaults, a_ring_whose_call_fails_later_is_given_up) {
  SKIP_WITHOUT_IO_URING();
  for (const int error : {EPERM, ENOMEM, EBADF, EAGAIN, EBUSY}) {
    const std::string said = said_with([error] { rings.enter.play({0, error}); });
    EXPECT_EQ(said, twice("weft: io_uring cannot be used (io_uring_enter: " + std::string(std::strerror(error)) +
                          "); continuing with epoll alone\n"));
    EXPECT_EQ(rings.enters, 2);
    EXPECT_EQ(rings.in_batches, static_cast<int>(many)) << "the first round";
  }
}

// No kernel does this, but what it has taken from the queue counts, not what it says.
// req: IO-6
TEST(UringFaults, a_ring_whose_call_fails_after_it_has_received_loses_no_byte) {
  SKIP_WITHOUT_IO_URING();
  const std::string said = said_with([] { rings.leave.play({EINTR}); });
  EXPECT_EQ(said,
            twice("weft: io_uring cannot be used (io_uring_enter: Interrupted system call); continuing with epoll "
                  "alone\n"));
  EXPECT_EQ(rings.enters, 1);
}

// req: IO-6
TEST(UringFaults, nothing_is_said_of_a_ring_that_nobody_has_asked_for) {
  EXPECT_EQ(said_with([] { rings.setup.play({EPERM}); }, batches::quietly), "");
}

// A kernel that is older than receives by io_uring: it refuses the entries, not the call.
// req: IO-6
TEST(UringFaults, a_ring_that_does_not_know_receives_is_given_up) {
  SKIP_WITHOUT_IO_URING();
  const std::string said = said_with([] { rings.before_trial = [] { rings.entries[0].opcode = 255; }; });
  EXPECT_EQ(said,
            twice("weft: io_uring cannot be used (IORING_OP_RECV: Invalid argument); continuing with epoll alone\n"));
  EXPECT_EQ(rings.enters, 0);
}

// req: IO-6
TEST(UringFaults, a_ring_whose_first_call_fails_is_given_up_before_it_has_received) {
  SKIP_WITHOUT_IO_URING();
  const std::string said = said_with([] { rings.trial.play({EPERM}); });
  EXPECT_EQ(said, twice("weft: io_uring cannot be used (io_uring_enter: Operation not permitted); continuing with "
                        "epoll alone\n"));
  EXPECT_EQ(rings.enters, 0);
}

// A kernel that refuses receives would use the same numbers. But a socket tells its error once: if the reader received
// again, it would take a broken transfer for a complete one.
// req: IO-6
TEST(UringFaults, an_error_of_a_socket_in_a_batch_reaches_its_reader_and_the_ring_stays_in_use) {
  SKIP_WITHOUT_IO_URING();
  testing::internal::CaptureStderr();
  for (const int error : {EACCES, EOPNOTSUPP, EINVAL}) {
    with_batches([error] {
      crowd c(many);
      auto readers = c.wait_in([](const net::tcp_stream& from) {
        char room[64];
        std::error_code why;
        const std::size_t n = from.read_some(room, why);
        return std::pair(std::string(room, n), why);
      });
      rings.after_enter = [error] { rings.outcomes[1].res = -error; };  // that of the trial is number 0
      c.send("x");
      rings.release_events();
      int failed = 0;
      for (auto& r : readers) {
        const auto [bytes, why] = r.join();
        failed += why == std::error_code(error, std::generic_category()) ? 1 : 0;
        EXPECT_EQ(bytes, why ? "" : "x");
      }
      EXPECT_EQ(failed, 1);
      EXPECT_EQ(rings.one_by_one, 0);
      rings.after_enter = {};
      rounds(c, 1);
      EXPECT_EQ(rings.enters, 2);
    });
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// What the kernel does not take from the queue is left to its readers, and the next batch begins with an empty queue.
// req: IO-6
TEST(UringFaults, a_ring_that_takes_a_part_of_the_batch_leaves_the_rest_to_the_readers) {
  SKIP_WITHOUT_IO_URING();
  for (const unsigned taken : {0u, 1u, 7u, 15u}) {
    with_batches([taken] {
      crowd c(many);
      rings.shortened = [taken](unsigned) { return taken; };
      rounds(c, 1);
      EXPECT_EQ(rings.one_by_one, static_cast<int>(many - taken));
      rings.shortened = {};
      rounds(c, 20);  // more than the queue has places, so it wraps around
      EXPECT_EQ(rings.enters, 21);
      EXPECT_EQ(rings.one_by_one, 0);
    });
  }
}

// The same number of bytes goes the same ways, with a ring, without one, and with one that is lost on the way.
// req: BZ-12 IO-6
TEST(UringFaults, bytes_are_the_same_with_a_ring_without_one_and_when_it_is_lost) {
  const auto all_is_echoed = [] {
    constexpr std::size_t connections = 64;
    const std::size_t messages = scaled(100) + 10;
    crowd c(connections);
    std::vector<weft::join_handle<std::size_t>> echoes;
    for (std::size_t i = 0; i < connections; ++i)
      echoes.push_back(weft::spawn([s = &c[i].server] {
        std::size_t sum = 0;
        char room[100];
        while (const std::size_t n = s->read_some(room)) {
          s->write_all({room, n});
          sum += n;
        }
        return sum;
      }));
    std::size_t sent = 0;
    for (std::size_t m = 0; m < messages; ++m) {
      const auto message = [&](std::size_t i) { return pattern((m * 7 + i * 13) % 300 + 1); };
      for (std::size_t i = 0; i < connections; ++i) {
        c[i].client.write_all(message(i));
        sent += message(i).size();
      }
      for (std::size_t i = 0; i < connections; ++i) {
        std::string back(message(i).size(), '\0');
        c[i].client.read_exactly({back.data(), back.size()});
        ASSERT_EQ(back, message(i));
      }
    }
    std::size_t received = 0;
    for (std::size_t i = 0; i < connections; ++i) c[i].client.shutdown(net::half::write);
    for (auto& e : echoes) received += e.join();
    EXPECT_EQ(received, sent);
  };
  with_batches(all_is_echoed, batches::none);
  EXPECT_EQ(rings.enters, 0);
  with_batches(all_is_echoed, batches::quietly);
  EXPECT_EQ(rings.in_batches > 0, has_io_uring());
  with_batches(
      [&] {
        rings.enter.play({0, 0, 0, ENOMEM});
        all_is_echoed();
      },
      batches::quietly);
}

// Readers of a batch are cancelled, late, closed or served: each byte is received once or stays where it was.
// req: IO-2 IO-3 IO-6
TEST(UringFaults, a_batch_that_races_with_cancellations_and_deadlines_conserves_bytes) {
  with_batches([] {
    crowd c(many);
    base::random random(1);
    for (std::size_t round = scaled(400) + 20; round != 0; --round) {
      const auto limit = std::chrono::microseconds(random.below(2) == 0 ? 1'000'000 : 300 + random.below(1'000));
      rings.hold_events();
      latch begun(many);
      std::vector<weft::join_handle<std::size_t>> readers;
      for (std::size_t i = 0; i < many; ++i)
        readers.push_back(weft::spawn([&begun, limit, s = &c[i].server] {
          begun.count_down();
          char room[8];
          std::error_code why;
          return s->read_some_for(limit, room, why);
        }));
      begun.wait();
      std::vector<weft::task_ref> cancelled;
      for (auto& r : readers) cancelled.push_back(r.ref());
      auto canceller = weft::spawn([&, cancels = random.below(many), from = random.below(many)] {
        for (std::uint32_t i = 0; i < cancels; ++i) cancelled[(from + i) % many].cancel();
      });
      c.send("x");
      rings.release_events();
      std::size_t bytes = 0;
      for (auto& r : readers) {
        try {
          bytes += r.join();
        } catch (const weft::task_cancelled&) {
          // It has received nothing.
        }
      }
      canceller.join();
      for (std::size_t i = 0; i < many; ++i) {
        char room[8];
        std::error_code why;
        bytes += c[i].server.try_read_some(room, why);
      }
      ASSERT_EQ(bytes, many);
    }
    EXPECT_EQ(rings.enters > 0, has_io_uring());
  });
}

}  // namespace
