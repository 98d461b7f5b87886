// One direction of a descriptor (src/io/direction.hpp): edges, calls that find nothing more, waits, cancellation, close.
// sources: io/direction.cpp wait/fiber_wait.cpp wait/select.cpp wait/stop_bridge.cpp wait/thread_waiter.cpp wait/join.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp sync/caller.cpp
// abstract lock
// abstract scheduler
//
// io.D1. No edge is lost (a deadlock here).
// io.D2. Whoever waits while there is something to try is woken (a deadlock here).
// io.D3. An event of an earlier life changes nothing.
//
// A poller may make the call of the task that it has claimed (src/io/batcher.hpp):
//
// io.B3. What was received is the outcome of the task's operation: no byte is lost.
// io.B4. No edge is lost (a deadlock here).
#include "io/direction.hpp"

#include "io/reception.hpp"
#include "sync.hpp"
#include <weft/detail/io_core.hpp>

using namespace model;
namespace io = weft::io;
namespace task = weft::task;
namespace waits = weft::waits;

namespace {

// A descriptor whose kernel side is a number of bytes.
class socket {
 public:
  socket() { direction_.open(); }

  // The kernel: bytes come, and the edge is told at some later time.
  void come(int bytes) {
    bytes_.fetch_add(bytes, base::acq_rel);
    tell(0);
  }
  void tell(std::uint32_t generation, bool for_ever = false) {
    std::int64_t left = 0;
    waits::node* n = direction_.tell(generation, for_ever, left);
    waiting_.fetch_sub(left, base::relaxed);
    if (n != nullptr) waits::resume(*n->who);
  }
  // A poller that makes the call of the task that it claims.
  void come_in_batch(int bytes) {
    bytes_.fetch_add(bytes, base::acq_rel);
    std::int64_t left = 0;
    waits::node* n = direction_.tell(0, false, left);
    waiting_.fetch_sub(left, base::relaxed);
    if (n == nullptr) return;
    io::reception& wanted = *static_cast<io::limited_node*>(n)->wanted;
    wanted.look_at(direction_);
    wanted.outcome = take(static_cast<int>(wanted.size));
    n->mark |= io::direction::received;
    waits::resume(*n->who);
  }
  void close() {
    locks::claimed_waiters all;
    direction_.own_lock().acquire();
    direction_.close(all);
    direction_.own_lock().release();
    all.resume();
  }

  // An operation that takes at most `most` bytes; 0 if the direction is closed.
  int read(int most) {
    for (;;) {
      const io::direction::view seen = direction_.look();
      if (io::direction::is_closed(seen)) return 0;
      if (io::direction::is_worth_trying(seen)) {
        const int n = take(most);
        if (n == 0) direction_.found_nothing(seen);
        if (n != 0) return took(n, most, seen);
      }
      io::reception got{nullptr, static_cast<std::size_t>(most)};
      while (wait(&got)) {
        const io::direction::view before = got.seen_before(direction_);
        if (got.outcome != 0) return took(static_cast<int>(got.outcome), most, before);
        direction_.found_nothing(before);
      }
    }
  }
  // Only waits, as an arm of a select does, or as a reader does. Returns true if the call was made for the reader.
  bool wait(io::reception* wanted = nullptr) {
    readiness op(*this);
    io::limited_node n;
    n.wanted = wanted;
    const waits::outcome o = waits::fiber_wait(op, n, {.where = {}});
    model_assert(!n.linked);
    if (o == waits::outcome::cancelled) waits::throw_cancelled();
    return (n.mark & io::direction::received) != 0;
  }

  [[nodiscard]] int left() { return bytes_.load(base::relaxed); }
  [[nodiscard]] bool nobody_waits() { return waiting_.load(base::relaxed) == 0; }
  io::direction& direction() { return direction_; }

 private:
  class readiness final : public waits::waitable {
   public:
    explicit readiness(socket& s) noexcept : socket_(s) {}
    bool try_complete() noexcept override { return io::direction::is_worth_trying(socket_.direction_.look()); }
    bool try_locked() noexcept override { return try_complete(); }
    bool publish(waits::node& n) noexcept override {
      socket_.direction_.publish(n, socket_.waiting_);
      return true;
    }
    void unpublish(waits::node& n) noexcept override { socket_.direction_.unpublish(n); }
    base::lock* own_lock() noexcept override { return &socket_.direction_.own_lock(); }
    waits::subject what() const noexcept override {
      static constexpr waits::wait_kind kind{"readiness"};
      return {&kind, &socket_};
    }

   private:
    socket& socket_;
  };

  int took(int n, int most, io::direction::view seen) {
    if (n < most) direction_.took_all(seen);
    direction_.pass_on();
    return n;
  }
  int take(int most) {
    int seen = bytes_.load(base::acquire);
    int n;
    do n = seen < most ? seen : most;
    while (n != 0 && !bytes_.compare_exchange_weak(seen, seen - n, base::acq_rel, base::acquire));
    return n;
  }

  base::atomic<int> bytes_{0};
  io::direction direction_;
  io::waiting_count waiting_{0};
};

}  // namespace

// Bytes come between the call that finds less than it asked for and the park.
// req: IO-5
MODEL_TEST(direction_edge_against_a_short_read) {
  socket s;
  fiber reader([&] {
    int got = 0;
    while (got < 2) got += s.read(2);
    model_assert(got == 2);
  });
  thread([&] { s.come(1); });
  thread([&] { s.come(1); });
  join_all();
  model_assert(s.nobody_waits());
}

// One edge for two bytes: who takes the first passes it on.
// req: IO-5
MODEL_TEST(direction_two_readers_and_one_edge) {
  socket s;
  fiber a([&] { model_assert(s.read(1) == 1); });
  fiber b([&] { model_assert(s.read(1) == 1); });
  thread([&] { s.come(2); });
  join_all();
  model_assert(s.nobody_waits());
}

// A waiter that only asks does not keep the reader behind it from its byte.
// req: IO-5
MODEL_TEST(direction_one_who_asks_and_one_who_reads) {
  socket s;
  s.direction().found_nothing(s.direction().look());
  fiber asks([&] {
    s.wait();
    s.direction().pass_on();
  });
  fiber reads([&] { model_assert(s.read(1) == 1); });
  thread([&] { s.come(1); });
  join_all();
  model_assert(s.nobody_waits());
}

// req: IO-2
MODEL_TEST(direction_cancel_against_edge, .preemptions = 2) {
  socket s;
  int got = 0;
  fiber a([&] { got = s.read(1); });
  fiber b([&] { model_assert(s.read(1) == 1); });
  thread([&] { a.cancel(); });
  thread([&] {
    s.come(1);
    s.come(1);
  });
  join_all();
  model_assert(a.cancelled == (got == 0) && s.nobody_waits());
}

// req: IO-2 IO-3
MODEL_TEST(direction_close_against_wait_and_edge) {
  socket s;
  int a_got = -1;
  int b_got = -1;
  fiber a([&] { a_got = s.read(1); });
  fiber b([&] { b_got = s.read(1); });
  thread([&] { s.come(1); });
  thread([&] { s.close(); });
  join_all();
  model_assert(a_got >= 0 && b_got >= 0 && a_got + b_got <= 1 && s.nobody_waits());
}

// An error that was not for ever: the call says EAGAIN after all, and the reader waits for the next edge instead of
// trying again and again (a livelock here).
MODEL_TEST(direction_an_end_that_was_none) {
  socket s;
  fiber reader([&] { model_assert(s.read(1) == 1); });
  thread([&] {
    s.tell(0, true);
    s.come(1);
  });
  join_all();
  model_assert(s.nobody_waits());
}

// The record has its second life, and an event of the first is still on its way.
// req: IO-3
MODEL_TEST(direction_stale_event_wakes_nobody) {
  socket s;
  s.close();
  s.direction().open();
  s.direction().found_nothing(s.direction().look());
  bool told = false;
  fiber stranger([&] {
    s.wait();
    told = true;
  });
  thread([&] { s.tell(0); });
  thread([&] { stranger.cancel(); });
  join_all();
  model_assert(!told && stranger.cancelled && s.nobody_waits());
}

// The batch finds nothing, and a byte comes before its reader knows.
// req: IO-5 IO-6
MODEL_TEST(direction_batch_that_finds_nothing_against_edge) {
  socket s;
  fiber reader([&] { model_assert(s.read(1) == 1); });
  thread([&] {
    s.come_in_batch(0);
    s.come(1);
  });
  join_all();
  model_assert(s.nobody_waits());
}

// A short receive in a batch, and one more byte.
// req: IO-5 IO-6
MODEL_TEST(direction_batch_against_a_short_read) {
  socket s;
  fiber reader([&] {
    int got = 0;
    while (got < 2) got += s.read(2);
    model_assert(got == 2);
  });
  thread([&] { s.come_in_batch(1); });
  thread([&] { s.come_in_batch(1); });
  join_all();
  model_assert(s.nobody_waits());
}

// The reader that was received for passes the edge on.
// req: IO-6
MODEL_TEST(direction_batch_for_one_of_two_readers) {
  socket s;
  fiber a([&] { model_assert(s.read(1) == 1); });
  fiber b([&] { model_assert(s.read(1) == 1); });
  thread([&] { s.come_in_batch(2); });
  join_all();
  model_assert(s.nobody_waits());
}

// The claim decides: the byte was received by the reader, or is left.
// req: IO-2 IO-6
MODEL_TEST(direction_batch_against_cancel) {
  socket s;
  int got = 0;
  fiber a([&] { got = s.read(1); });
  thread([&] { a.cancel(); });
  thread([&] { s.come_in_batch(1); });
  join_all();
  model_assert(a.cancelled == (got == 0) && got + s.left() == 1 && s.nobody_waits());
}

// req: IO-2 IO-3 IO-6
MODEL_TEST(direction_batch_against_close) {
  socket s;
  int got = -1;
  fiber a([&] { got = s.read(1); });
  thread([&] { s.come_in_batch(1); });
  thread([&] { s.close(); });
  join_all();
  model_assert(got >= 0 && got + s.left() == 1 && s.nobody_waits());
}
