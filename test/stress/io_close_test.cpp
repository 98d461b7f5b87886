// Closing against everything that others do with the descriptor, while its number and its record go to strangers.
// ctest: timeout=7200 uring
#include "stress/io.hpp"

namespace {

using namespace io_stress;

bool is_of_close(const std::error_code& why) {
  return why == std::errc::operation_canceled || why == std::errc::broken_pipe || why == std::errc::connection_reset;
}

// A reader or writer that used the number after it was given back would meet the stranger's bytes, or write into them.
// req: IO-3
TEST(IoClose, a_number_is_never_used_by_those_who_had_it_before) {
  in_rounds(4'000, 1'000'000, [](std::size_t rounds) {
    base::random random(rounds);
    for (std::size_t i = 0; i < rounds; ++i) {
      auto [mine, other] = net::unix_stream::pair();
      auto reader = weft::spawn([&s = mine] {
        char room[64];
        std::error_code why;
        while (!why)
          for (const char c : std::string_view(room, s.read_some(room, why))) EXPECT_EQ(c, 'm');
        return why;
      });
      auto writer = weft::spawn([&s = mine] {
        std::error_code why;
        while (!why) (void)s.write_all("mmmm", why);
        return why;
      });
      auto peer = weft::spawn([&s = other] {
        std::error_code why;
        for (int n = 0; n < 20 && !why; ++n) (void)s.write_all("mm", why);
      });
      if (i % 2 == 0) weft::yield();
      dawdle(random, 4'000);
      mine.close();
      // The first numbers that are free are those that were just given back.
      auto [stranger, friendly] = net::unix_stream::pair();
      friendly.write_all("ff");
      EXPECT_EQ(reader.join(), std::errc::operation_canceled);
      EXPECT_TRUE(is_of_close(writer.join()));
      peer.join();
      char room[8];
      ASSERT_EQ(stranger.read_some(room), 2u) << "nobody else has read it";
      ASSERT_EQ(std::string(room, 2), "ff");
      stranger.close();
      ASSERT_EQ(read_to_end(friendly), "") << "nobody else has written";
    }
  });
}

// An event of the old descriptor is on its way when the record gets a new one, which has nothing to say.
// req: IO-3
TEST(IoClose, a_stale_event_reaches_no_stranger) {
  in_rounds(1'000, 1'000'000, [](std::size_t rounds) {
    base::random random(rounds);
    for (std::size_t i = 0; i < rounds; ++i) {
      auto [heard, loud] = net::unix_stream::pair();
      auto reader = weft::spawn([&s = heard] {
        char room[8];
        std::error_code why;
        (void)s.read_some(room, why);
      });
      weft::yield();
      loud.write_all("x");
      dawdle(random, 2'000);
      heard.close();
      reader.join();
      auto [silent, quiet] = net::unix_stream::pair();
      auto limit = weft::after(std::chrono::microseconds(random.below(30)));
      ASSERT_EQ(weft::select(silent.readable(), limit).index(), 1u) << "there is nothing to read";
    }
  });
}

}  // namespace
