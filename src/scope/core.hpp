// One scope: the tasks that were spawned into it, who waits for them, and what goes wrong. Its owner opens it and leaves it. The owner
// of a with_scope is a task, whose body is cancelled with the children; that of a task_group (group.hpp) is a task or an outside
// thread, which the scope cannot cancel.
//
// G1. A child is linked before it can run and unlinked after its result, if nobody wants it, is gone. The owner leaves only when
//     none is linked, so no child outlives the scope.                              model/scope, test scope/children_*
// G2. Closed and "none is linked" are one decision under the lock: a spawn is either counted or refused. model/scope
// G3. Cancelling notes it here, then sets the bit in each child's word and in that of the body's task, all under the lock. Who is
//     admitted later is cancelled at birth.                                        model/scope, test scope/cancel_*
// G4. The owner's bit is its own for as long as the scope is open: it takes the bit back when it leaves, and asks the scopes
//     around this one (state.hpp S4).                                              model/scope, test scope/nested_*
// G5. Nothing of the user's runs under the lock: exceptions are dropped, tasks woken and stop_tokens told after it. (Checked builds
//     abort when a task suspends under one.)                                        test wait/stop_bridge_*
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <source_location>
#include <stop_token>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "sched/alarm.hpp"
#include "sched/chain.hpp"
#include "sched/scheduler.hpp"
#include "scope/failures.hpp"
#include "task/task.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/detail/kin.hpp>
#include <weft/detail/scope_core.hpp>

namespace weft::inline v1::detail {

class scope_core : public family, private sched::alarm {
 public:
  // `body`: the task that runs the body, which is cancelled with the children; nullptr: there is none.
  scope_core(sched::scheduler& in, task::record* body, failures policy, std::source_location where);
  virtual ~scope_core() = default;

  void add_reference() noexcept { references_.fetch_add(1, base::relaxed); }
  void drop_reference() noexcept;

  [[nodiscard]] sched::scheduler& scheduler() const noexcept { return scheduler_; }
  [[nodiscard]] const std::source_location& where() const noexcept { return where_; }
  [[nodiscard]] bool is_cancelled() const noexcept { return cancelled_.load(base::relaxed); }

  // --- the owner --------------------------------------------------------------------------------------------------
  void open();
  void cancel_on(const std::stop_token& stop);
  // Waits until none is linked; cancels when the owner is cancelled, and waits on.
  enum class afterwards : std::uint8_t { open, closed };
  void drain(afterwards how, std::source_location where);
  void drain() { drain(afterwards::closed, where_); }
  void leave() noexcept;
  [[nodiscard]] bool body_failed(std::exception_ptr why) noexcept;  // false: an echo of the scope's cancellation
  [[nodiscard]] std::exception_ptr take_failure() { return failures_.take(); }
  [[nodiscard]] bool timed_out() const noexcept { return timed_out_; }
  [[nodiscard]] bool children_timed_out() const noexcept { return children_timed_out_; }
  [[nodiscard]] task::record* body() const noexcept { return body_; }

  // --- anybody ----------------------------------------------------------------------------------------------------
  // False: the scope has ended. Throws std::bad_alloc.
  [[nodiscard]] bool admit(kin& child);
  // A place without a child: while it is taken the scope does not end. False: it has.
  [[nodiscard]] bool reserve() noexcept;
  void release() noexcept;
  enum class cause : std::uint8_t { request, deadline, stop_token };
  void cancel(cause why = cause::request) noexcept;
  void cancel_at(base::time_ns when);  // by a task of this runtime

  // --- family -----------------------------------------------------------------------------------------------------
  void failed(kin& child, std::exception_ptr why) noexcept override;
  void ended(kin& child) noexcept override;

 protected:
  [[nodiscard]] bool echoes(const std::exception_ptr& why) const noexcept;
  void note_failure(std::exception_ptr why, task::record* by) noexcept;
  // With the lock and none linked: everything that was noted is taken away, as if it had just been opened. Empty: the deadline is being
  // rung at this moment. The ring has got a place instead; wait for it and ask again.
  [[nodiscard]] std::optional<kept_failures> renew() noexcept;

  const std::source_location where_;
  base::lock lock_;
  std::size_t live_ = 0;  // children and reservations; under the lock
  kept_failures failures_;  // under the lock, until all have ended

 private:
  class drained;

  void ring() noexcept override;
  static bool is_within(const void* innermost, const void* scope) noexcept;  // of the scopes that one task has open
  [[nodiscard]] task::parkable* one_less() noexcept;

  task::record* const body_;
  sched::scheduler& scheduler_;
  scope_core* outer_ = nullptr;  // of those that the body's task has open
  base::atomic<std::uint32_t> references_{1};
  base::atomic<bool> cancelled_{false};  // written under the lock

  // Under the lock:
  bool closed_ = false;
  bool timed_out_ = false;  // cancelled by the deadline
  bool children_timed_out_ = false;  // and there were children then, or later
  bool stopped_ = false;  // by the stop_token, which stays so
  bool rung_ = false;  // since alarm_set_in_ was set
  bool ring_has_place_ = false;
  kin* children_ = nullptr;
  drained* waiter_ = nullptr;  // the owner, once it has nothing to do but wait
  sched::timer_source* alarm_set_in_ = nullptr;

  struct canceller {
    scope_core* scope;
    void operator()() const noexcept { scope->cancel(cause::stop_token); }
  };
  std::optional<std::stop_callback<canceller>> stop_;
};

// Of the owner's reference.
struct drop_owner {
  void operator()(scope_core* s) const noexcept { s->drop_reference(); }
};

}  // namespace weft::inline v1::detail
