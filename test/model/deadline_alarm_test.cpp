// The alarm of a direction (src/io/deadline_alarm.hpp): waits with time limits against the alarm that rings.
// sources: io/deadline_alarm.cpp io/direction.cpp wait/fiber_wait.cpp wait/select.cpp wait/stop_bridge.cpp wait/thread_waiter.cpp wait/join.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp sync/caller.cpp
// abstract lock
// abstract scheduler
//
// io.T1. No deadline is forgotten (a deadlock here).
// io.T2. A wait ends by its own deadline only, and never early.
#include "io/deadline_alarm.hpp"

#include <utility>

#include "sync.hpp"
#include <weft/detail/io_core.hpp>

using namespace model;
namespace io = weft::io;
namespace waits = weft::waits;

namespace {

constexpr base::time_ns start = base::time_ns{1} << 40;  // where the clock stands first

// Timers for one alarm. Time passes when they fire.
class clockwork final : public weft::sched::timer_source {
 public:
  [[nodiscard]] base::time_ns next_deadline() const noexcept override { return base::never_ns; }
  std::size_t fire(base::time_ns, std::size_t, weft::sched::fired_timers&) noexcept override { return 0; }
  void insert(weft::timing::entry&) noexcept override {}
  void remove(weft::timing::entry&) noexcept override {}
  void set(weft::sched::alarm& a, base::time_ns when) noexcept override {
    base::lock_guard guard(lock_);
    model_assert(set_ == nullptr);
    set_ = &a;
    when_ = when;
  }
  [[nodiscard]] bool clear(weft::sched::alarm&) noexcept override {
    base::lock_guard guard(lock_);
    return std::exchange(set_, nullptr) != nullptr;
  }
  void fire_once() {
    lock_.acquire();
    weft::sched::alarm* a = std::exchange(set_, nullptr);
    const base::time_ns when = when_;
    lock_.release();
    if (a == nullptr) return base::cpu_relax();
    base::pass_time(when);
    a->ring();
  }

 private:
  weft::sched::alarm* set_ = nullptr;
  base::time_ns when_ = 0;
};

class socket {
 public:
  socket() {
    direction_.open();
    direction_.found_nothing(direction_.look());
  }
  void tell() {
    std::int64_t left = 0;
    waits::node* n = direction_.tell(0, false, left);
    waiting_.fetch_sub(left, base::relaxed);
    if (n != nullptr) waits::resume(*n->who);
  }
  // Waits for an edge, and takes it. Returns false if the deadline came first.
  bool wait_until(base::time_ns deadline) {
    for (;;) {
      const io::direction::view seen = direction_.look();
      if (io::direction::is_worth_trying(seen)) {
        direction_.found_nothing(seen);
        return true;
      }
      if (!alarm_.is_set_for(deadline, 1)) model_assert(alarm_.arm(deadline, timers_, 1));
      limited_wait op(*this);
      io::limited_node n;
      n.deadline = deadline;
      const waits::outcome o = waits::fiber_wait(op, n, {.where = {}});
      model_assert(!n.linked);
      if (o == waits::outcome::cancelled) waits::throw_cancelled();
      if (n.mark == io::direction::late) {
        model_assert(base::now() >= deadline);
        return false;
      }
    }
  }
  // Fires until so many have told that they are done.
  void fire_until(const base::atomic<int>& done, int all) {
    while (done.load(base::relaxed) != all) timers_.fire_once();
  }
  [[nodiscard]] bool nobody_waits() { return waiting_.load(base::relaxed) == 0; }

 private:
  class limited_wait final : public waits::waitable {
   public:
    explicit limited_wait(socket& s) noexcept : socket_(s) {}
    bool try_complete() noexcept override { return io::direction::is_worth_trying(socket_.direction_.look()); }
    bool try_locked() noexcept override { return try_complete(); }
    bool publish(waits::node& n) noexcept override {
      if (!socket_.alarm_.is_set_for(static_cast<io::limited_node&>(n).deadline, 1)) return false;
      n.mark = io::direction::limited;
      socket_.direction_.publish(n, socket_.waiting_);
      return true;
    }
    void unpublish(waits::node& n) noexcept override { socket_.direction_.unpublish(n); }
    base::lock* own_lock() noexcept override { return &socket_.direction_.own_lock(); }
    waits::subject what() const noexcept override {
      static constexpr waits::wait_kind kind{"limited wait"};
      return {&kind, &socket_};
    }

   private:
    socket& socket_;
  };

  clockwork timers_;
  io::direction direction_;
  io::deadline_alarm alarm_{direction_};
  io::waiting_count waiting_{0};
};

}  // namespace

// The second wait finds the alarm of the first, set, about to ring, or rung.
// req: IO-2
MODEL_TEST(deadline_alarm_waits_one_after_the_other, .preemptions = 3) {
  socket s;
  base::atomic<int> done{0};
  fiber f([&] {
    model_assert(!s.wait_until(start + 10));
    model_assert(!s.wait_until(start + 30));
    model_assert(!s.wait_until(start + 20));
    done.fetch_add(1, base::relaxed);
  });
  thread([&] { s.fire_until(done, 1); });
  join_all();
  model_assert(s.nobody_waits());
}

// Whichever comes first, the alarm serves both.
// req: IO-2
MODEL_TEST(deadline_alarm_of_two_waits, .preemptions = 1) {
  socket s;
  base::atomic<int> done{0};
  const auto wait = [&](base::time_ns after) {
    model_assert(!s.wait_until(start + after));
    done.fetch_add(1, base::relaxed);
  };
  fiber later([&] { wait(20); });
  fiber earlier([&] { wait(10); });
  thread([&] { s.fire_until(done, 2); });
  join_all();
  model_assert(s.nobody_waits());
}

// An edge ends the first wait, or comes too late for it.
// req: IO-2
MODEL_TEST(deadline_alarm_against_an_edge, .preemptions = 1) {
  socket s;
  base::atomic<int> done{0};
  int edges = 0;
  fiber f([&] {
    edges += s.wait_until(start + 10) ? 1 : 0;
    edges += s.wait_until(start + 20) ? 1 : 0;
    done.fetch_add(1, base::relaxed);
  });
  thread([&] { s.tell(); });
  thread([&] { s.fire_until(done, 1); });
  join_all();
  model_assert(edges <= 1 && s.nobody_waits());
}

// req: IO-2
MODEL_TEST(deadline_alarm_against_cancel, .preemptions = 1) {
  socket s;
  base::atomic<int> done{0};
  fiber cancelled([&] { (void)s.wait_until(start + 10); });
  fiber other([&] {
    model_assert(!s.wait_until(start + 20));
    done.fetch_add(1, base::relaxed);
  });
  thread([&] { cancelled.cancel(); });
  thread([&] { s.fire_until(done, 1); });
  join_all();
  model_assert(s.nobody_waits());
}
