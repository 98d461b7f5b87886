#include "scope/core.hpp"

#include <utility>

#include "base/clock.hpp"
#include "sched/worker.hpp"
#include "wait/stop_bridge.hpp"
#include <weft/cancelled.hpp>

namespace weft::inline v1::detail {
namespace {

task::record& record_of(const kin& child) noexcept { return *static_cast<task::record*>(child.task); }

void link(kin*& first, kin& child) noexcept {
  child.previous = nullptr;
  child.next = first;
  if (first != nullptr) first->previous = &child;
  first = &child;
}

void unlink(kin*& first, kin& child) noexcept {
  (child.previous == nullptr ? first : child.previous->next) = child.next;
  if (child.next != nullptr) child.next->previous = child.previous;
}

// Does what a request to cancel t leaves to be done under the lock: a claimed task goes into `woken`. Returns true if a
// stop_on_cancel bridges the cancellation to a stop_token; t then has one reference more.
bool note_cancelled(task::record& t, task::wake_result how, sched::chain<task::record>& woken) noexcept {
  if (how == task::wake_result::claimed) {
    t.wake_value = task::wake_value(task::wake_reason::cancelled, 0);
    woken.push_back(&t);
  }
  if (!t.word.is_bridged()) [[likely]]
    return false;
  sched::add_reference(&t);
  return true;
}

}  // namespace

constexpr waits::wait_kind scope_kind{"end of scope", waits::kind_number::scope};

// The owner's wait for the last child. The partner is one_less(): the child that ends last claims the owner through
// claim().
class scope_core::drained final : public waits::waitable {
 public:
  static constexpr bool waits_for_tasks = true;
  drained(scope_core& s, afterwards how) noexcept : scope_(s), closes_(how == afterwards::closed) {}

  // Never completes without the lock: the child that ended last still holds it, and nobody waits for that child.
  bool try_complete() noexcept override { return false; }
  bool try_locked() noexcept override {
    if (scope_.live_ != 0) return false;
    base::step<"scope.close.at_once">([&] { scope_.closed_ = closes_; });  // scope.G2
    return true;
  }
  bool publish(waits::node& n) noexcept override {
    node_ = &n;
    scope_.waiter_ = this;
    return true;
  }
  // Called by the last child, with the lock. Returns nullptr if the owner is awake; it will look again.
  [[nodiscard]] task::parkable* claim() noexcept {
    if (!waits::claim(*node_, task::wake_reason::data)) return nullptr;
    base::step<"scope.close.by_the_last">([&] { scope_.closed_ = closes_; });  // scope.G2
    scope_.waiter_ = nullptr;
    return node_->who;
  }
  void unpublish(waits::node&) noexcept override { scope_.waiter_ = nullptr; }
  [[nodiscard]] base::lock* own_lock() noexcept override { return &scope_.lock_; }
  [[nodiscard]] waits::subject what() const noexcept override { return {&scope_kind, &scope_}; }

 private:
  scope_core& scope_;
  waits::node* node_ = nullptr;
  const bool closes_;
};

scope_core::scope_core(sched::scheduler& in, task::record* body, failures policy, std::source_location where)
    : where_(where),
      failures_(policy),
      body_(body),
      scheduler_(in) {
  failures_.make_room(0);
}

void scope_core::drop_reference() noexcept {
  // acq_rel: whoever frees the scope has seen what the others did with it.
  if (references_.fetch_sub(1, base::acq_rel) == 1) delete this;
}

// ---- the owner -----------------------------------------------------------------------------------------------------

void scope_core::open() {
  outer_ = static_cast<scope_core*>(body_->scopes());
  body_->scopes() = this;
}

void scope_core::cancel_on(const std::stop_token& stop) {
  if (stop.stop_possible()) stop_.emplace(stop, canceller{this});
}

void scope_core::drain(afterwards how, std::source_location where) {
  drained all_ended(*this, how);
  waits::node n;
  // Once the children have been told of a cancellation, another one could add nothing, so the wait is not interrupted.
  while (waits::fiber_wait(all_ended, n, {.interruptible = !is_cancelled(), .where = where}) ==
         waits::outcome::cancelled)
    cancel();
}

// The scope is closed here, so nobody cancels it any more. What is left is to undo its cancellation of the owner
// (scope.G4): the owner's bit is taken back, and set again if a scope around this one is cancelled.
// state_word::withdraw_cancel() says why no cancellation is lost in between.
void scope_core::leave() noexcept {
  stop_.reset();
  if (alarm_set_in_ != nullptr && alarm_set_in_->clear(*this)) drop_reference();
  if (body_ == nullptr) return;
  body_->scopes() = outer_;  // NOLINT(clang-analyzer-cplusplus.NewDelete): the caller has a reference as well
  if (!is_cancelled()) return;
  body_->word.withdraw_cancel();
  for (const scope_core* s = outer_; s != nullptr; s = s->outer_)
    if (base::check<"scope.leave.outer">(s->is_cancelled())) return (void)body_->word.request_cancel_of_scope();
}

std::optional<kept_failures> scope_core::renew() noexcept {
  if (alarm_set_in_ != nullptr) {
    if (alarm_set_in_->clear(*this)) {
      drop_reference();  // the alarm's reference; the owner has one as well
    } else if (base::check<"scope.renew.ringing">(!rung_)) {
      ring_has_place_ = true;
      ++live_;
      return std::nullopt;
    }
    alarm_set_in_ = nullptr;
    rung_ = false;
  }
  // relaxed, as in cancel(): whoever spawns next takes the lock.
  base::step<"scope.renew.cancelled">([&] { cancelled_.store(stopped_, base::relaxed); });
  timed_out_ = children_timed_out_ = false;
  return std::optional<kept_failures>(std::move(failures_));
}

// ---- anybody -------------------------------------------------------------------------------------------------------

bool scope_core::admit(kin& child) {
  task::record& t = record_of(child);
  base::lock_guard guard(lock_);
  if (base::check<"scope.admit.closed">(closed_)) return false;
  failures_.make_room(live_ + 1);
  child.of = this;
  t.extras |= task::has_kin;
  t.word.spawned();  // before others may find it and set bits in its word
  link(children_, child);
  ++live_;
  // scope.G3: cancel() holds the lock, so a child is either linked before it, and found, or cancelled here.
  if (base::check<"scope.admit.cancelled">(is_cancelled())) (void)t.word.request_cancel();
  if (timed_out_) children_timed_out_ = true;
  return true;
}

bool scope_core::reserve() noexcept {
  base::lock_guard guard(lock_);
  if (!closed_) ++live_;
  return !closed_;
}

void scope_core::cancel(cause why) noexcept {
  sched::chain<task::record> woken;
  kin* bridged = nullptr;
  bool body_bridged = false;
  {
    base::lock_guard guard(lock_);
    if (why == cause::stop_token) stopped_ = true;
    if (base::check<"scope.cancel.closed">(closed_) || is_cancelled()) return;
    // relaxed: the read-modify-write of each word orders it (scope.G4).
    cancelled_.store(true, base::relaxed);
    timed_out_ = why == cause::deadline;
    children_timed_out_ = timed_out_ && live_ != 0;
    for (kin* child = children_; child != nullptr; child = child->next) {
      task::record& t = record_of(*child);
      if (note_cancelled(t, t.word.request_cancel(), woken)) child->told = std::exchange(bridged, child);
    }
    if (body_ != nullptr) body_bridged = note_cancelled(*body_, body_->word.request_cancel_of_scope(), woken);
  }
  // The bridges are told before the tasks are woken, while the bridges of the parked tasks still exist.
  while (bridged != nullptr) {
    task::record& t = record_of(*bridged);
    bridged = bridged->told;
    waits::tell_bridges(t);
    sched::drop_reference(&t);
  }
  if (body_bridged) {
    waits::tell_bridges(*body_, &is_within, this);
    sched::drop_reference(body_);
  }
  sched::scheduler::schedule_all(std::move(woken));  // last, because the scope may be gone once its tasks run
}

bool scope_core::is_within(const void* innermost, const void* scope) noexcept {
  for (const auto* s = static_cast<const scope_core*>(innermost); s != nullptr; s = s->outer_)
    if (s == scope) return true;
  return false;
}

void scope_core::cancel_at(base::time_ns when) {
  sched::worker* w = sched::this_worker();
  if (w == nullptr || &w->owner() != &scheduler_)
    throw_usage("the deadline of a scope is set by a task of its runtime, not from outside");
  if (when <= base::now()) return cancel(cause::deadline);
  base::lock_guard guard(lock_);
  // An alarm that cannot be cleared is being rung, and cancels the scope: a later deadline has nothing left to do.
  if (closed_ || (alarm_set_in_ != nullptr && !alarm_set_in_->clear(*this))) return;
  if (alarm_set_in_ == nullptr) add_reference();  // for the alarm
  alarm_set_in_ = &w->timers();
  alarm_set_in_->set(*this, when);
}

void scope_core::ring() noexcept {
  cancel(cause::deadline);
  lock_.acquire();
  rung_ = true;
  // renew() may have waited for this ring: it gave the ring a place, which is given back here.
  task::parkable* owner = std::exchange(ring_has_place_, false) ? one_less() : nullptr;
  lock_.release();
  if (owner != nullptr) waits::resume_joiner(*owner);
  drop_reference();
}

// ---- family --------------------------------------------------------------------------------------------------------

// In a cancelled scope a task_cancelled counts as an echo: the body or a child joined a task that was cancelled, as a
// rule by this scope. It adds nothing to what is known.
bool scope_core::echoes(const std::exception_ptr& why) const noexcept {
  if (!is_cancelled()) return false;
  try {
    std::rethrow_exception(why);
  } catch (const task_cancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

void scope_core::note_failure(std::exception_ptr why, task::record* by) noexcept {
  bool cancels = false;
  {
    base::lock_guard guard(lock_);
    cancels = failures_.note(why, by);
  }
  if (cancels) cancel();
}

void scope_core::failed(kin&, std::exception_ptr why) noexcept {
  if (!echoes(why)) note_failure(std::move(why), nullptr);
}

bool scope_core::body_failed(std::exception_ptr why) noexcept {
  if (echoes(why)) return false;
  note_failure(std::move(why), nullptr);
  return true;
}

// Called with the lock. The last one to leave claims the owner. After the lock is released, it accesses only the
// owner's record, which is its own by the claim; the scope may be gone.
task::parkable* scope_core::one_less() noexcept {
  return --live_ != 0 || waiter_ == nullptr ? nullptr : waiter_->claim();
}

void scope_core::ended(kin& child) noexcept {
  lock_.acquire();
  unlink(children_, child);
  task::parkable* owner = one_less();
  lock_.release();
  if (owner != nullptr) waits::resume_joiner(*owner);
}

void scope_core::release() noexcept {
  lock_.acquire();
  task::parkable* owner = one_less();
  lock_.release();
  if (owner != nullptr) waits::resume_joiner(*owner);
}

}  // namespace weft::inline v1::detail
