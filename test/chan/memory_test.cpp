// What happens before what: the four promises of channels, as in Go's memory model. Each test shares a plain variable that only
// the promise protects, so a broken one is a data race (TSan) or a wrong value.
#include <thread>

#include "chan/channels.hpp"

namespace {

using namespace chan_test;

// The ways to send and to receive; each must keep every promise.
enum class way { plain, selected, limited };
inline constexpr way ways[] = {way::plain, way::selected, way::limited};

template <class T>
bool send(weft::writer<T>& out, T value, way how) {
  switch (how) {
    case way::plain: return static_cast<bool>(out.send(std::move(value)));
    case way::selected: return weft::alt(out << std::move(value)).ok();
    case way::limited: return static_cast<bool>(out.send_for(std::move(value), 1h));
  }
  return false;
}
template <class T>
std::optional<T> receive(weft::reader<T>& in, way how) {
  std::optional<T> got;
  switch (how) {
    case way::plain: return in.recv();
    case way::selected: (void)weft::alt(in >> got); return got;
    case way::limited: return in.recv_for(1h);
  }
  return got;
}

template <class Test>
void at_all_ways(Test&& test) {
  at_capacities([&](std::size_t capacity) {
    for (const way w : ways)
      for (const way r : ways) test(capacity, w, r);
  });
}

// Writes, then sends; who has received reads.
template <class T, class Start>
void sends_come_first(std::size_t capacity, way w, way r, Start start) {
  const std::size_t n = scaled(200);
  auto [out, in] = make<T>(capacity);
  std::vector<std::size_t> written(n);
  auto sender = start([&] {
    for (std::size_t i = 0; i < n; ++i) {
      written[i] = i + 1;
      ASSERT_TRUE(send(out, T(), w));
    }
  });
  auto receiver = start([&] {
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_TRUE(receive(in, r));
      ASSERT_EQ(written[i], i + 1);
    }
  });
  sender.join();
  receiver.join();
}

// req: LS-C1
TEST(HappensBefore, a_send_comes_before_the_completion_of_its_receive) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    const auto task = [&](auto f) { return rt->spawn(std::move(f)); };
    at_all_ways([&](std::size_t capacity, way w, way r) {
      sends_come_first<int>(capacity, w, r, task);
      sends_come_first<std::string>(capacity, w, r, task);
    });
  });
  at_all_ways([](std::size_t capacity, way w, way r) {
    sends_come_first<int>(capacity, w, r, [](auto f) { return std::thread(std::move(f)); });
  });
}

// req: LS-C1
TEST(HappensBefore, the_close_comes_before_a_receive_that_ends_by_it) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    at_all_ways([&](std::size_t capacity, way, way r) {
      for (std::size_t round = 0; round < scaled(100); ++round) {
        auto [out, in] = make<int>(capacity);
        std::size_t written = 0;
        auto closer = rt->spawn([&] {
          written = round + 1;
          out.close();
        });
        auto reader = rt->spawn([&] {
          EXPECT_FALSE(receive(in, r));
          EXPECT_EQ(written, round + 1);
        });
        auto watcher = rt->spawn([&] {
          (void)weft::alt(~in);
          EXPECT_EQ(written, round + 1);
        });
        reader.join();
        watcher.join();
        closer.join();
      }
    });
  });
}

// req: LS-C1 CC-10
TEST(HappensBefore, a_receive_from_a_rendezvous_comes_before_the_completion_of_its_send) {
  support::watchdog guard(110s);
  for (const way w : ways)
    for (const way r : ways) {
      const std::size_t n = scaled(500);
      at_worker_counts([&](std::size_t workers) {
        watched_runtime rt(workers);
        auto [out, in] = weft::make_channel<int>(0);
        std::vector<std::size_t> written(n);
        auto receiver = rt->spawn([&] {
          for (std::size_t i = 0; i < n; ++i) {
            written[i] = i + 1;
            ASSERT_TRUE(receive(in, r));
          }
        });
        for (std::size_t i = 0; i < n; ++i) {
          ASSERT_TRUE(send(out, 1, w));
          ASSERT_EQ(written[i], i + 1);
        }
        receiver.join();
      });
    }
}

// req: LS-C1 KC-11
TEST(HappensBefore, the_kth_receive_comes_before_the_completion_of_the_send_that_is_capacity_later) {
  support::watchdog guard(110s);
  for (const std::size_t capacity : {1, 2, 3, 5, 8})
    for (const way w : ways)
      for (const way r : ways)
        at_worker_counts([&](std::size_t workers) {
          const std::size_t n = scaled(1'000) + capacity;
          watched_runtime rt(workers);
          auto [out, in] = make<int>(capacity);
          std::vector<std::size_t> written(n);
          auto receiver = rt->spawn([&] {
            for (std::size_t k = 0; k < n; ++k) {
              written[k] = k + 1;
              ASSERT_TRUE(receive(in, r));
            }
          });
          auto sender = rt->spawn([&] {
            for (std::size_t k = 0; k < n; ++k) {
              ASSERT_TRUE(send(out, 1, w));
              if (k < capacity) continue;
              ASSERT_EQ(written[k - capacity], k - capacity + 1);
            }
          });
          receiver.join();
          sender.join();
        });
}

// A channel of capacity one is a mutex, one of capacity n a semaphore.
// req: LS-C1 KC-11
TEST(HappensBefore, a_channel_of_capacity_one_is_a_mutex) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [lock, unlock] = weft::make_channel<int>(1);
    std::size_t count = 0;
    const std::size_t n = scaled(4'000);
    std::vector<weft::join_handle<void>> all;
    for (int t = 0; t < 4; ++t)
      all.push_back(rt->spawn([&, t] {
        for (std::size_t i = 0; i < n; ++i) {
          ASSERT_TRUE(send(lock, 1, ways[static_cast<std::size_t>(t) % 3]));
          ++count;
          ASSERT_TRUE(receive(unlock, ways[i % 3]));
        }
      }));
    for (auto& h : all) h.join();
    EXPECT_EQ(count, 4 * n);
  });
}

// A sender whose value comes back sees what the reader did before it left.
// req: CSP-2 CC-12
TEST(HappensBefore, the_readers_death_comes_before_a_send_that_fails_by_it) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (const way w : ways)
      for (std::size_t round = 0; round < scaled(200); ++round) {
        auto ends = weft::make_channel<int>(0);
        std::size_t written = 0;
        auto sender = rt->spawn([&, out = std::move(ends.out)]() mutable {
          EXPECT_FALSE(send(out, 1, w));
          EXPECT_EQ(written, round + 1);
        });
        auto reader = rt->spawn([&, in = std::move(ends.in)]() mutable {
          written = round + 1;
          in.reset();
        });
        sender.join();
        reader.join();
      }
  });
}

}  // namespace
