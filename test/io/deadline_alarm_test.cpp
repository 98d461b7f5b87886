// Time limits of operations on descriptors: the alarm of a direction (io/deadline_alarm.hpp) stays set when a wait ends
// well, and must not be felt by the waits after it.
// ctest: uring
#include "io/deadline_alarm.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "io/fd_record.hpp"
#include "io/net.hpp"

namespace {

using namespace support::usual;
using namespace support;

using std::chrono::steady_clock;

// A read with that limit waits and gets a byte. The alarm stays set for the limit, unless the machine was so slow that
// the limit has passed.
void read_in_time(tcp_pair& p, steady_clock::duration limit) {
  weft::with_scope([&](weft::scope& s) {
    auto reader = s.spawn([&] {
      char room[1];
      for (std::error_code why = std::make_error_code(std::errc::timed_out); why == std::errc::timed_out;)
        (void)p.server.read_some_for(limit, room, why);
      return room[0];
    });
    const auto is_set = [&] {
      return p.server.record().is_alarm_set_for(weft::io::side::read, base::now() + limit.count());
    };
    until(is_set);
    p.client.write_all("x");
    EXPECT_EQ(reader.join(), 'x');
  });
}

// Reads, and expects the limit to end it, not before its time.
void read_too_long(const net::tcp_stream& s, steady_clock::duration limit) {
  char room[1];
  std::error_code why;
  const auto begun = steady_clock::now();
  EXPECT_EQ(s.read_some_for(limit, room, why), 0u);
  EXPECT_EQ(why, std::errc::timed_out);
  EXPECT_GE(steady_clock::now() - begun, limit) << "never early";
}

// Begins a read that is to end by a byte, though an alarm of before rings meanwhile.
template <class Read>
void survives_an_alarm(tcp_pair& p, Read read) {
  auto reader = weft::spawn(std::move(read));
  weft::io::direction& d = p.server.record().in(weft::io::side::read);
  until([&] {
    base::lock_guard guard(d.own_lock());
    return d.is_waited_for();
  });
  weft::sleep_for(5ms);  // longer than the alarms of before
  p.client.write_all("y");
  EXPECT_EQ(reader.join(), 1u);
}

// req: IO-2
TEST(DeadlineAlarm, a_limit_ends_a_wait_and_not_before_its_time) {
  with_sockets([] {
    auto p = connected_pair();
    for (const auto limit : {1ms, 3ms, 1ms, 2ms}) read_too_long(p.server, limit);
    read_too_long(p.server, 0ms);
    read_too_long(p.server, -1ms);
    p.client.write_all("x");
    char room[1];
    EXPECT_EQ(p.server.read_some_for(0ms, room), 1u) << "what is there needs no time";
  });
}

TEST(DeadlineAlarm, a_limit_that_moves_earlier_ends_the_wait_in_its_time) {
  with_sockets([] {
    auto p = connected_pair();
    read_in_time(p, 1h);
    read_too_long(p.server, 1ms);
    read_in_time(p, 1h);
    p.server.expires_after(1ms);
    char room[1];
    EXPECT_EQ(error_of([&] { (void)p.server.read_some(room); }), std::errc::timed_out);
  });
}

TEST(DeadlineAlarm, an_alarm_of_an_earlier_wait_does_not_end_one_with_a_later_limit) {
  with_sockets([] {
    auto p = connected_pair();
    read_in_time(p, 2ms);
    survives_an_alarm(p, [&] {
      char room[1];
      return p.server.read_some_for(1h, room);
    });
    read_in_time(p, 2ms);
    read_too_long(p.server, 8ms);  // the alarm rings early, and sets itself again
  });
}

TEST(DeadlineAlarm, an_alarm_of_an_earlier_wait_does_not_end_one_without_a_limit) {
  with_sockets([] {
    auto p = connected_pair();
    read_in_time(p, 2ms);
    p.server.expires_never();
    survives_an_alarm(p, [&] {
      char room[1];
      return p.server.read_some(room);
    });
  });
}

TEST(DeadlineAlarm, an_alarm_of_a_closed_stream_does_not_end_a_wait_for_the_next_one) {
  with_sockets([] {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    auto p = connected_pair();
    read_in_time(p, 2ms);
    const weft::io::fd_record* before = &p.server.record();
    p.server = net::tcp_stream();  // gives the record back, and the next stream gets it
    auto again = net::tcp_stream::connect(listener.local_endpoint());
    ASSERT_EQ(&again.record(), before);
    tcp_pair next{listener.accept(), std::move(again)};
    survives_an_alarm(next, [&] {
      char room[1];
      return next.server.read_some_for(1h, room);
    });
    read_too_long(next.server, 1ms);
  });
}

TEST(DeadlineAlarm, a_limit_of_one_reader_does_not_end_another) {
  with_sockets([] {
    auto p = connected_pair();
    weft::with_scope([&](weft::scope& s) {
      const auto read = [&](steady_clock::duration limit) {
        return s.spawn([&p, limit] {
          char room[1];
          std::error_code why;
          const std::size_t n = p.server.read_some_for(limit, room, why);
          return std::pair(n, why);
        });
      };
      auto longest = read(1h);
      auto middle = read(6ms);
      auto shortest = read(1ms);
      const auto late = std::pair(std::size_t{0}, std::make_error_code(std::errc::timed_out));
      EXPECT_EQ(shortest.join(), late);
      EXPECT_EQ(middle.join(), late) << "it was not forgotten when the alarm rang for another";
      p.client.write_all("x");
      EXPECT_EQ(longest.join().first, 1u);
    });
  });
}

TEST(DeadlineAlarm, a_limit_holds_in_both_directions) {
  with_sockets([] {
    auto p = connected_pair();
    const std::string much(1 << 20, 'x');
    p.client.expires_after(2ms);
    std::error_code why;
    while (!why) (void)p.client.write_all(much, why);
    EXPECT_EQ(why, std::errc::timed_out);
    read_too_long(p.client, 1ms);
  });
}

// req: IO-2
TEST(DeadlineAlarm, a_cancelled_wait_leaves_an_alarm_that_nobody_feels) {
  with_sockets([] {
    auto p = connected_pair();
    for (int round = 0; round < 5; ++round) {
      auto reader = weft::spawn([&] { read_too_long(p.server, 1h); });
      weft::yield();
      reader.cancel();
      EXPECT_THROW(reader.join(), weft::task_cancelled);
      read_in_time(p, 2ms);
      survives_an_alarm(p, [&] {
        char room[1];
        return p.server.read_some_for(1h, room);
      });
    }
  });
}

TEST(DeadlineAlarm, a_limit_ends_each_of_many_waits_once) {
  with_sockets([] {
    constexpr std::size_t count = 100;
    std::vector<tcp_pair> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(connected_pair());
    base::atomic<std::size_t> late{0};
    weft::with_scope([&](weft::scope& s) {
      std::vector<weft::child<std::size_t>> readers;
      for (std::size_t i = 0; i < count; ++i)
        readers.push_back(s.spawn([&p = all[i], &late, i] {
          read_too_long(p.server, std::chrono::milliseconds(1 + i % 7));
          late.fetch_add(1, base::relaxed);
          char room[1];
          return p.server.read_some_for(1h, room);
        }));
      until([&] { return late.load(base::relaxed) == count; });
      for (auto& p : all) p.client.write_all("x");
      for (auto& r : readers) EXPECT_EQ(r.join(), 1u);
    });
  });
}

// req: IO-2
TEST(DeadlineAlarm, a_limit_that_races_with_bytes_loses_none_of_them) {
  with_sockets([] {
    constexpr std::size_t count = 2000;
    auto p = connected_pair();
    weft::with_scope([&](weft::scope& s) {
      s.spawn([&] {
        std::minstd_rand random(7);
        for (std::size_t i = 0; i < count; ++i) {
          p.client.write_all("x");
          if (random() % 4 == 0) weft::sleep_for(std::chrono::microseconds(random() % 100));
        }
      });
      std::minstd_rand random(11);
      std::size_t got = 0;
      while (got < count) {
        char room[3];
        std::error_code why;
        got += p.server.read_some_for(std::chrono::microseconds(random() % 200), room, why);
        ASSERT_TRUE(!why || why == std::errc::timed_out) << why.message();
      }
      EXPECT_EQ(got, count);
    });
    read_too_long(p.server, 1ms);
  });
}

// ---- runtimes -------------------------------------------------------------------------------------------------------

TEST(DeadlineAlarm, a_runtime_ends_while_alarms_are_set_in_it) {
  const std::size_t before = open_descriptors();
  {
    std::vector<tcp_pair> all;
    for (const std::size_t workers : {1, 2, 4, 1, 2, 4}) {
      watched_runtime rt(workers);
      all.clear();  // the next ones get the same records, and see that their alarms can be set again
      for (int i = 0; i < 10; ++i) all.push_back(connected_pair());
      rt->run([&] {
        for (auto& p : all) read_in_time(p, 1h);
      });
    }
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(DeadlineAlarm, another_runtime_has_its_limits_while_an_alarm_is_set_in_the_first) {
  auto p = connected_pair();
  watched_runtime second(2);
  {
    watched_runtime first(2);
    first->run([&] { read_in_time(p, 1h); });
    second->run([&] { read_too_long(p.server, 1ms); });
    first->run([&] { read_too_long(p.server, 1ms); });
  }
  second->run([&] {
    read_too_long(p.server, 1ms);
    auto other = connected_pair();
    read_in_time(other, 1h);
    read_too_long(other.server, 1ms);
  });
}

// The alarm that the first runtime has left in the record would ring early enough, if that runtime did not end.
TEST(DeadlineAlarm, another_runtime_does_not_rely_on_an_alarm_in_the_first) {
  watched_runtime second(1);
  const net::tcp_listener listener(net::endpoint::loopback(0));
  auto p = connected_pair();
  net::tcp_stream again;
  weft::join_handle<void> reader;
  {
    watched_runtime first(1);
    first->run([&] { read_in_time(p, 200ms); });
    const weft::io::fd_record* before = &p.server.record();
    p.server = net::tcp_stream();
    again = net::tcp_stream::connect(listener.local_endpoint());
    ASSERT_EQ(&again.record(), before);
    reader = second->spawn([&] { read_too_long(again, 250ms); });
    weft::io::direction& d = again.record().in(weft::io::side::read);
    until([&] {
      base::lock_guard guard(d.own_lock());
      return d.is_waited_for();
    });
  }
  reader.join();
}

}  // namespace
