// One scope: the tasks that were spawned into it, who waits for them, and what goes wrong. Its owner opens it and
// leaves it. The owner of a with_scope is a task; its body is cancelled together with the children. The owner of a
// task_group (group.hpp) is a task or an outside thread, which the scope cannot cancel.
//
// scope.G1. A child is linked before it can run, and unlinked after its result, if nobody wants it, is gone. The owner
//     leaves only when no child is linked, so no child outlives the scope.           model/scope, test scope/children_*
// scope.G2. "Closed" and "no child is linked" are one decision under the lock: a spawn is either counted or refused.
//                                                                                                           model/scope
// scope.G3. cancel() notes the cancellation here, then sets the bit in each child's word and in that of the body's
//     task, all under the lock. A child that is admitted later is cancelled from the start.
//                                                                                      model/scope, test scope/cancel_*
// scope.G4. While the scope is open, it may set the cancellation bit of its owner. The owner takes the bit back when it
//     leaves, and then asks the scopes around this one (task.S4).                      model/scope, test scope/nested_*
// scope.G5. No code of the user runs under the lock: exceptions are dropped, tasks are woken and stop_tokens are told
//     after its release. (Checked builds abort when a task suspends under one: base.L4.)
//                                                                              test wait/a_callback_may_use_the_scope_*
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
  // `body` is the task that runs the body, which is cancelled with the children; nullptr if there is none.
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
  // Waits until no child is linked. If the owner is cancelled meanwhile, it cancels the scope and continues to wait.
  enum class afterwards : std::uint8_t { open, closed };
  void drain(afterwards how, std::source_location where);
  void drain() { drain(afterwards::closed, where_); }
  void leave() noexcept;
  [[nodiscard]] bool body_failed(std::exception_ptr why) noexcept;  // false if it only echoes the scope's cancellation
  [[nodiscard]] std::exception_ptr take_failure() { return failures_.take(); }
  [[nodiscard]] bool timed_out() const noexcept { return timed_out_; }
  [[nodiscard]] bool children_timed_out() const noexcept { return children_timed_out_; }
  [[nodiscard]] task::record* body() const noexcept { return body_; }

  // --- anybody ----------------------------------------------------------------------------------------------------
  // Links a child. Returns false if the scope has ended. Throws std::bad_alloc.
  [[nodiscard]] bool admit(kin& child);
  // Takes a place without a child. While it is taken the scope does not end. Returns false if the scope has ended.
  [[nodiscard]] bool reserve() noexcept;
  void release() noexcept;
  enum class cause : std::uint8_t { request, deadline, stop_token };
  void cancel(cause why = cause::request) noexcept;
  void cancel_at(base::time_ns when);  // called by a task of this runtime

  // --- family -----------------------------------------------------------------------------------------------------
  void failed(kin& child, std::exception_ptr why) noexcept override;
  void ended(kin& child) noexcept override;

 protected:
  [[nodiscard]] bool echoes(const std::exception_ptr& why) const noexcept;
  void note_failure(std::exception_ptr why, task::record* by) noexcept;
  // Called with the lock, while no child is linked. Takes everything away that was noted, as if the scope had just been
  // opened. Returns nothing if the deadline is being rung at this moment; the ring then has a place in the scope, and
  // the caller waits for it and asks again.
  [[nodiscard]] std::optional<kept_failures> renew() noexcept;

  const std::source_location where_;
  base::lock lock_;
  std::size_t live_ = 0;  // children and other places; under the lock
  kept_failures failures_;  // under the lock, until all have ended

 private:
  friend struct observer;
  class drained;

  void ring() noexcept override;
  static bool is_within(const void* innermost, const void* scope) noexcept;  // both are scopes that one task has open
  [[nodiscard]] task::parkable* one_less() noexcept;

  task::record* const body_;
  sched::scheduler& scheduler_;
  scope_core* outer_ = nullptr;  // the next outer scope that the body's task has open
  base::atomic<std::uint32_t> references_{1};
  base::atomic<bool> cancelled_{false};  // written under the lock

  // Under the lock:
  bool closed_ = false;
  bool timed_out_ = false;  // cancelled by the deadline
  bool children_timed_out_ = false;  // cancelled by the deadline, and there were children then or later
  bool stopped_ = false;  // cancelled by the stop_token, which stays stopped
  bool rung_ = false;  // the alarm has rung since alarm_set_in_ was set
  bool ring_has_place_ = false;
  kin* children_ = nullptr;
  drained* waiter_ = nullptr;  // the wait of the owner, while it is parked
  sched::timer_source* alarm_set_in_ = nullptr;

  struct canceller {
    scope_core* scope;
    void operator()() const noexcept { scope->cancel(cause::stop_token); }
  };
  std::optional<std::stop_callback<canceller>> stop_;
};

// Drops the owner's reference.
struct drop_owner {
  void operator()(scope_core* s) const noexcept { s->drop_reference(); }
};

}  // namespace weft::inline v1::detail
