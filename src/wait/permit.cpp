#include "wait/permit.hpp"

#include <exception>
#include <utility>

#include "base/log.hpp"
#include "sched/scheduler.hpp"
#include "task/name.hpp"
#include "wait/fiber_wait.hpp"

namespace weft::inline v1::waits {

using task::state_word;

namespace {

constexpr wait_kind park_if_kind{"park_if", kind_number::park_if};

// A wait that is on no list and needs no lock: whoever ends it holds a reference to the task.
class permit_wait {
 public:
  static constexpr std::uint64_t park_flags = state_word::takes_permit;
  permit_wait(task::record& self, bool (*still)(const void*), const void* context) noexcept
      : self_(self),
        still_(still),
        context_(context) {}

  [[nodiscard]] static base::lock* own_lock() noexcept { return nullptr; }
  // Asks the user's question once more while the task is PARKING, because an unpark() that comes from now on finds the
  // task. An exception of the question is kept until settle(), when the task is RUNNING again.
  [[nodiscard]] bool publish(const node&) noexcept {
    if ((self_.word.peek() & state_word::permit) != 0) return false;
    try {
      return still_(context_);
    } catch (...) {
      failed_ = std::current_exception();
      return false;
    }
  }
  void unpublish(const node&) noexcept {}
  void settle() {
    if (failed_ != nullptr) std::rethrow_exception(std::move(failed_));
  }
  [[nodiscard]] subject what() const noexcept { return {&park_if_kind, context_}; }

 private:
  task::record& self_;
  bool (*still_)(const void* context);
  const void* context_;
  std::exception_ptr failed_;
};

}  // namespace

void park_if(bool (*still)(const void* context), const void* context, std::source_location where) {
  sched::worker* on = sched::this_worker();
  if (on == nullptr || on->current() == nullptr) [[unlikely]]
    weft::detail::throw_usage("park_if needs a task: it parks the one that calls it, and this thread runs none", where);
  task::record& self = *on->current();
  check_may_suspend(0, where);
  const bool interruptible = can_be_cancelled(*on, self);
  const auto is_cancelled = [&] { return interruptible && (self.word.load() & state_word::cancel_requested) != 0; };
  if (is_cancelled()) throw_cancelled();
  const bool had_permit = self.word.consume_permit();
  if (had_permit || !still(context)) {
    WEFT_LOG(park, "task %s does not park: %s", task::label(self).text,
             had_permit ? "it has a permit" : "the condition has changed");
    on = sched::this_worker();
    if (!on->spend_budget()) on->yield();
    return;
  }
  task_waiter waiter(*sched::this_worker(), where);  // the question may have moved the task to another worker
  permit_wait w(self, still, context);
  node none;
  wait<permit_wait> waiting(w, none, interruptible);
  if (waiting.enter(waiter) == step::park) {
    // publish() has asked the question once more, after enter() passed the gate. It may have yielded, and so moved the
    // task to another worker, or spawned tasks, which the gate has to line up before the task leaves.
    waiter.was_moved();
    waiter.on().pass_gate();
    waiter.park(w);
  } else {
    w.settle();
  }
  // A permit wins over a cancellation: the next cancellation point throws that one, whereas a permit would be lost.
  if (self.word.consume_permit()) return;
  if (is_cancelled()) throw_cancelled();
}

void unpark(task::record& t) noexcept {
  WEFT_LOG(wake, "unpark of task %s", task::label(t).text);
  if (t.word.grant_permit() == task::wake_result::claimed) sched::scheduler::schedule(&t);
}

}  // namespace weft::inline v1::waits
