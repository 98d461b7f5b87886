// How many wait, and how much is buffered: counted, not looked up.
#include <sys/mman.h>

#include <new>

#include "chan/channels.hpp"
#include "wait/node.hpp"

namespace {

using namespace chan_test;
namespace chan = weft::chan;

// Operations that wait on a channel, on a page that nobody may read while it is sealed.
template <class Operation>
class sealed_waiters {
 public:
  static constexpr std::size_t count = 3;

  explicit sealed_waiters(chan::core& c)
      : page_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    for (std::size_t i = 0; i < count; ++i) {
      Operation& op = *new (static_cast<std::byte*>(page_) + i * sizeof(Operation)) Operation(&c);
      op.own_lock()->acquire();
      EXPECT_TRUE(op.publish(op.node()));
      op.own_lock()->release();
    }
    EXPECT_EQ(::mprotect(page_, bytes, PROT_NONE), 0);
  }
  ~sealed_waiters() {
    EXPECT_EQ(::mprotect(page_, bytes, PROT_READ | PROT_WRITE), 0);
    for (std::size_t i = 0; i < count; ++i) {
      auto& op = *std::launder(reinterpret_cast<Operation*>(static_cast<std::byte*>(page_) + i * sizeof(Operation)));
      op.own_lock()->acquire();
      op.unpublish(op.node());
      op.own_lock()->release();
      op.~Operation();
    }
    ::munmap(page_, bytes);
  }
  sealed_waiters(const sealed_waiters&) = delete;
  sealed_waiters& operator=(const sealed_waiters&) = delete;

 private:
  static constexpr std::size_t bytes = 4096;
  static_assert(count * sizeof(Operation) <= bytes);
  void* page_;
};

// A channel of int by its core.
class bare_channel {
 public:
  explicit bare_channel(std::size_t capacity)
      : core_(chan::make(chan::element_of<int>, chan::kind::bounded, capacity)) {}
  ~bare_channel() {
    chan::drop_end(core_, chan::side::writer);
    chan::drop_end(core_, chan::side::reader);
  }
  bare_channel(const bare_channel&) = delete;
  bare_channel& operator=(const bare_channel&) = delete;
  chan::core& operator*() const noexcept { return *core_; }

 private:
  chan::core* core_;
};

// req: CSP-2
TEST(Counts, counting_the_receivers_that_wait_looks_at_none_of_them) {
  for (const std::size_t capacity : {0, 1, 3}) {
    const bare_channel c(capacity);
    {
      const sealed_waiters<chan::receive_operation> waiting(*c);
      EXPECT_EQ(chan::counts_of(*c).waiting_receivers, waiting.count);
      EXPECT_EQ(chan::counts_of(*c).waiting_senders, 0u);
      EXPECT_EQ(chan::size_of(*c), 0u);
    }
    EXPECT_EQ(chan::counts_of(*c).waiting_receivers, 0u);
  }
}

// req: CSP-2
TEST(Counts, counting_the_senders_that_wait_looks_at_none_of_them) {
  for (const std::size_t capacity : {0, 1, 3}) {
    const bare_channel c(capacity);
    chan::words value{};
    for (std::size_t i = 0; i < capacity; ++i) ASSERT_EQ(chan::try_send(*c, &value), chan::status::done);
    {
      const sealed_waiters<chan::send_operation> waiting(*c);
      EXPECT_EQ(chan::counts_of(*c).waiting_senders, waiting.count);
      EXPECT_EQ(chan::counts_of(*c).waiting_receivers, 0u);
      EXPECT_EQ(chan::size_of(*c), capacity);
    }
    EXPECT_EQ(chan::counts_of(*c).waiting_senders, 0u);
  }
}

// req: CSP-2
TEST(Counts, receivers_count_from_their_park_until_they_are_served_cancelled_late_or_closed) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    at_capacities([&](std::size_t capacity) {
      auto [out, in] = make<int>(capacity);
      auto [other_out, other] = weft::make_channel<int>();
      const auto waiting = [&in] { return in.statistics().waiting_receivers; };
      auto served = rt->spawn([&] { EXPECT_EQ(in.recv(), 1); });
      until_receivers_wait(in, 1);
      auto cancelled = rt->spawn([&] { (void)in.recv(); });
      until_receivers_wait(in, 2);
      auto elsewhere = rt->spawn([&] {
        int v = 0;
        weft::select(in >> v, other >> v);
        EXPECT_EQ(v, 7);
      });
      until_receivers_wait(in, 3);
      auto closed = rt->spawn([&] { EXPECT_EQ(in.recv(), std::nullopt); });
      until_receivers_wait(in, 4);
      auto late = rt->spawn([&] { EXPECT_EQ(in.recv_for(1ms), std::nullopt); });
      late.join();
      EXPECT_EQ(waiting(), 4u);
      cancelled.cancel();  // from the middle of the list
      EXPECT_THROW(cancelled.join(), weft::task_cancelled);
      EXPECT_EQ(waiting(), 3u);
      EXPECT_TRUE(other_out.send(7));
      elsewhere.join();
      EXPECT_EQ(waiting(), 2u);
      EXPECT_TRUE(out.send(1));
      served.join();
      EXPECT_EQ(waiting(), 1u);
      out.close();
      closed.join();
      EXPECT_EQ(waiting(), 0u);
    });
  });
}

// req: CSP-2
TEST(Counts, senders_count_from_their_park_until_they_are_served_cancelled_late_or_abandoned) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (const std::size_t capacity : {0, 1, 3}) {
      SCOPED_TRACE(testing::Message() << "capacity " << capacity);
      auto [out, in] = make<int>(capacity);
      auto [other_out, other] = weft::make_channel<int>();
      const auto waiting = [&in] { return in.statistics().waiting_senders; };
      for (std::size_t i = 0; i < capacity; ++i) EXPECT_TRUE(out.send(0));
      auto served = rt->spawn([&] { EXPECT_TRUE(out.send(1)); });
      until_senders_wait(in, 1);
      auto cancelled = rt->spawn([&] { (void)out.send(2); });
      until_senders_wait(in, 2);
      auto elsewhere = rt->spawn([&] {
        int v = 0;
        weft::select(out << 3, other >> v);
        EXPECT_EQ(v, 7);
      });
      until_senders_wait(in, 3);
      auto abandoned = rt->spawn([&] { EXPECT_EQ(out.send(4).status(), send_status::closed); });
      until_senders_wait(in, 4);
      auto late = rt->spawn([&] { EXPECT_EQ(out.send_for(5, 1ms).status(), send_status::timed_out); });
      late.join();
      EXPECT_EQ(waiting(), 4u);
      cancelled.cancel();  // from the middle of the list
      EXPECT_THROW(cancelled.join(), weft::task_cancelled);
      EXPECT_EQ(waiting(), 3u);
      EXPECT_TRUE(other_out.send(7));
      elsewhere.join();
      EXPECT_EQ(waiting(), 2u);
      EXPECT_TRUE(in.recv());
      served.join();
      EXPECT_EQ(waiting(), 1u);
      in.close();
      abandoned.join();
      EXPECT_EQ(waiting(), 0u);
      EXPECT_EQ(in.size(), 0u);
    }
  });
}

}  // namespace
