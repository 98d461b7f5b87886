// The driver: what wakes tasks from outside of the process. The implementation of `io` brings the kernel's events.
//
// A runtime has one driver or none. It comes from the factory in scheduler_options. Workers poll it while they are
// awake, and one of the sleeping workers sleeps in it. poller.hpp decides who, and makes sure that one thread polls at
// a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/atomic.hpp"
#include "sched/chain.hpp"
#include "task/task.hpp"

namespace weft::inline v1 {
enum class io_backend : std::uint8_t;  // weft/runtime.hpp
}

namespace weft::inline v1::sched {

class driver {
 public:
  driver() noexcept : id_(new_id()) {}
  driver(const driver&) = delete;
  driver& operator=(const driver&) = delete;
  virtual ~driver() = default;
  // No other driver of this process has or had this number, and it is not 0.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  // Whether some task waits for an event. Any thread may ask, without a lock. It becomes true only by a task of this
  // runtime, on one of its workers, before that task parks. So a worker that goes to sleep after that sees it.
  [[nodiscard]] virtual bool is_wanted() const noexcept = 0;
  // Claims the tasks whose events have come, at most `most`, and appends them to `woken`. All of them belong to this
  // runtime, and the caller queues them. If there is none, the call waits for the first one until the deadline or until
  // interrupt(); with a deadline in the past it does not wait. One thread at a time calls this, perhaps on the stack of a
  // task that has ended, so it has no large frames. An event for which nobody waits is taken all the same; otherwise a
  // sleeper could not sleep.
  // Rejected: to pass the worker that gets the tasks. A sleeper leaves the idle set before it queues anything, because
  // otherwise it would often be the one that is woken for its own tasks.
  virtual void poll(base::time_ns deadline, std::size_t most, chain<task::record>& woken) noexcept = 0;
  // Makes a waiting poll return, or the next poll if none waits now. Any thread may call this. A poll may also return
  // for no reason.
  virtual void interrupt() noexcept = 0;

 private:
  [[nodiscard]] static std::uint64_t new_id() noexcept {
    static constinit base::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, base::relaxed) + 1;
  }
  const std::uint64_t id_;
};

using driver_factory = std::function<std::unique_ptr<driver>()>;
// The driver of a runtime whose options name no other. Defined by the io layer. `verbose`: also says when a choice that
// nobody has asked for turns out to be impossible.
[[nodiscard]] std::unique_ptr<driver> make_kernel_driver(io_backend io, bool verbose);

}  // namespace weft::inline v1::sched
