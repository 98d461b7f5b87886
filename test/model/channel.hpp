// Channels and tasks for model tests: the real core and operations, a virtual thread for each task.
#pragma once

#include <cstdint>

#include "chan/core.hpp"
#include "explore/explore.hpp"
#include "sched/scheduler.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/cancelled.hpp>

namespace model {

using u64 = std::uint64_t;
namespace base = weft::base;
namespace chan = weft::chan;
namespace waits = weft::waits;
using chan::side;
using chan::status;

enum class path : std::uint8_t { locked, lock_free };

// Values are numbers of a hoard of plain variables: whoever receives one and reads it has a data race unless the send
// happened before.
class channel {
 public:
  explicit channel(std::size_t capacity, path p = path::lock_free)
      : core(chan::element_of<u64>, chan::kind::bounded, capacity, p == path::lock_free) {}

  status send(u64 v) {
    hoard_[v] = static_cast<int>(v);
    chan::words w{{v, 0}};
    return chan::send(core, &w, {});
  }
  // 0: closed.
  u64 receive() {
    chan::words w{{0, 0}};
    if (chan::receive(core, &w, {}) != status::done) return 0;
    return seen(w);
  }
  u64 try_receive(status& how) {
    chan::words w{{0, 0}};
    how = chan::try_receive(core, &w);
    return how == status::done ? seen(w) : 0;
  }
  status try_send(u64 v) {
    hoard_[v] = static_cast<int>(v);
    chan::words w{{v, 0}};
    return chan::try_send(core, &w);
  }
  void close() { core.close(side::writer, nullptr); }
  void abandon() { core.close(side::reader, nullptr); }
  [[nodiscard]] bool nobody_waits() {
    const chan::counts c = core.count();
    return c.waiting_senders == 0 && c.waiting_receivers == 0;
  }

  chan::core core;

 private:
  u64 seen(const chan::words& w) {
    model_assert(w.word[0] < 8 && hoard_[w.word[0]] == static_cast<int>(w.word[0]));
    return w.word[0];
  }
  base::plain<int> hoard_[8];
};

// A task with a virtual thread of its own. `cancelled` is true if it ended so.
class fiber : public weft::sched::model_task {
 public:
  template <class F>
  explicit fiber(F f) : model_task(false) {
    explore::thread([this, f]() mutable {
      weft::sched::worker::run(*this, [&] {
        try {
          f();
        } catch (const weft::cancelled&) {
          cancelled = true;
        }
      });
    });
  }
  void cancel() noexcept { waits::cancel(*this); }
  bool cancelled = false;
};

}  // namespace model
