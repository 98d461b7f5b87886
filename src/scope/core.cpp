#include "scope/core.hpp"

#include <algorithm>
#include <compare>
#include <cstring>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "sched/worker.hpp"
#include "wait/stop_bridge.hpp"
#include <weft/cancelled.hpp>
#include <weft/scope_errors.hpp>

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

// What a request to cancel t leaves to be done. True: somebody bridges it to a stop_token.
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

// Body and children that join a child which failed, and let its exception out, throw the same one again. It stays where it came
// first. Sorted by address, since a comparison of each with each would take long for many.
void drop_repeated(std::vector<std::exception_ptr>& all) {
  if (all.size() == 1) return;
  struct entry {
    std::uintptr_t exception;
    std::size_t place;
    auto operator<=>(const entry&) const = default;
  };
  std::vector<entry> sorted(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    static_assert(sizeof(std::exception_ptr) == sizeof(std::uintptr_t));  // it has no order and no hash of its own
    // NOLINTNEXTLINE(bugprone-undefined-memory-manipulation): only its bytes are wanted
    std::memcpy(&sorted[i].exception, &all[i], sizeof sorted[i].exception);
    sorted[i].place = i;
  }
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i].exception == sorted[i - 1].exception) all[sorted[i].place] = nullptr;
  std::erase(all, nullptr);
}

}  // namespace

// The owner's wait for the last child.
class scope_core::drained final : public waits::waitable {
 public:
  static constexpr bool waits_for_tasks = true;
  explicit drained(scope_core& s) noexcept : scope_(s) {}

  // Never without the lock: the child that ended last still holds it, and nobody waits for that child.
  bool try_complete() noexcept override { return false; }
  bool try_locked() noexcept override {
    if (scope_.live_ != 0) return false;
    base::step<"scope.close.at_once">([&] { scope_.closed_ = true; });  // G2
    return true;
  }
  bool publish(waits::node& n) noexcept override {
    scope_.waiter_ = &n;
    return true;
  }
  void unpublish(waits::node&) noexcept override { scope_.waiter_ = nullptr; }
  void lock() noexcept override { scope_.lock_.acquire(); }
  void unlock() noexcept override { scope_.lock_.release(); }
  [[nodiscard]] base::lock* own_lock() noexcept override { return &scope_.lock_; }
  [[nodiscard]] const char* reason() const noexcept override { return "end of scope"; }
  [[nodiscard]] const void* object() const noexcept override { return &scope_; }

 private:
  scope_core& scope_;
};

scope_core::scope_core(task::record& owner, failures policy, std::source_location where)
    : owner_(owner),
      scheduler_(*owner.owner),
      where_(where),
      policy_(policy) {
  if (policy == failures::collect) all_.reserve(1);  // the body's; failed() cannot say that there is no room
}

void scope_core::drop_reference() noexcept {
  // acq_rel: whoever frees it has seen what the others did with it.
  if (references_.fetch_sub(1, base::acq_rel) == 1) delete this;
}

// ---- the owner -----------------------------------------------------------------------------------------------------

void scope_core::open() {
  outer_ = static_cast<scope_core*>(owner_.scopes);
  owner_.scopes = this;
}

void scope_core::cancel_on(const std::stop_token& stop) {
  if (stop.stop_possible()) stop_.emplace(stop, canceller{this});
}

void scope_core::drain() {
  drained all_ended(*this);
  waits::node n;
  // Once the children are told there is nothing a cancellation could add.
  while (waits::fiber_wait(all_ended, n, {.interruptible = !is_cancelled(), .where = where_}) ==
         waits::outcome::cancelled)
    cancel();
}

// Closed: nobody cancels it any more.
void scope_core::leave() noexcept {
  stop_.reset();
  if (alarm_set_in_ != nullptr && alarm_set_in_->clear(*this)) drop_reference();
  owner_.scopes = outer_;  // NOLINT(clang-analyzer-cplusplus.NewDelete): the caller has a reference, too
  if (!is_cancelled()) return;
  owner_.word.withdraw_cancel();
  for (const scope_core* s = outer_; s != nullptr; s = s->outer_)
    if (base::check<"scope.leave.outer">(s->is_cancelled())) return (void)owner_.word.request_cancel_of_scope();
}

std::exception_ptr scope_core::take_failure() {
  if (policy_ == failures::collect && !all_.empty()) {
    drop_repeated(all_);
    return std::make_exception_ptr(scope_failures(std::move(all_)));
  }
  return std::exchange(first_, nullptr);
}

// ---- anybody -------------------------------------------------------------------------------------------------------

bool scope_core::admit(kin& child) {
  task::record& t = record_of(child);
  base::lock_guard guard(lock_);
  if (base::check<"scope.admit.closed">(closed_)) return false;
  // Room for what it may throw, since failed() cannot say that there is none.
  if (policy_ == failures::collect && all_.capacity() < all_.size() + live_ + 2)
    all_.reserve(2 * (all_.size() + live_ + 2));
  child.of = this;
  t.extras |= task::has_kin;
  t.word.spawned();  // before somebody may find it and set bits in its word
  link(children_, child);
  ++live_;
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
  bool owner_bridged = false;
  {
    base::lock_guard guard(lock_);
    if (base::check<"scope.cancel.closed">(closed_) || is_cancelled()) return;
    // relaxed: the read-modify-write of each word orders it (G4).
    cancelled_.store(true, base::relaxed);
    timed_out_ = why == cause::deadline;
    children_timed_out_ = timed_out_ && live_ != 0;
    for (kin* child = children_; child != nullptr; child = child->next) {
      task::record& t = record_of(*child);
      if (note_cancelled(t, t.word.request_cancel(), woken)) child->told = std::exchange(bridged, child);
    }
    owner_bridged = note_cancelled(owner_, owner_.word.request_cancel_of_scope(), woken);
  }
  // Before they are woken, and so while the bridges of those that were parked stand.
  while (bridged != nullptr) {
    task::record& t = record_of(*bridged);
    bridged = bridged->told;
    waits::tell_bridges(t);
    sched::drop_reference(&t);
  }
  if (owner_bridged) {
    waits::tell_bridges(owner_, &is_within, this);
    sched::drop_reference(&owner_);
  }
  sched::scheduler::schedule_all(std::move(woken));  // the scope may be gone once its tasks run
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
  if (closed_ || (alarm_set_in_ != nullptr && !alarm_set_in_->clear(*this))) return;
  if (alarm_set_in_ == nullptr) add_reference();  // the alarm's
  alarm_set_in_ = &w->timers();
  alarm_set_in_->set(*this, when);
}

void scope_core::ring() noexcept {
  cancel(cause::deadline);
  drop_reference();
}

// ---- family --------------------------------------------------------------------------------------------------------

// Whoever finds a task cancelled, because the scope was, adds nothing.
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

void scope_core::note_failure(std::exception_ptr why) noexcept {
  {
    base::lock_guard guard(lock_);
    if (policy_ == failures::collect) {
      all_.push_back(std::move(why));  // there is room: see admit() and the constructor
      return;
    }
    if (first_ == nullptr) first_ = std::move(why);
  }
  cancel();
}

void scope_core::failed(std::exception_ptr why) noexcept {
  if (!echoes(why)) note_failure(std::move(why));
}

bool scope_core::body_failed(std::exception_ptr why) noexcept {
  if (echoes(why)) return false;
  note_failure(std::move(why));
  return true;
}

// The last one to leave wakes the owner, and is not heard of again: after the lock only the owner's record is touched, which is
// ours by the claim.
task::parkable* scope_core::one_less() noexcept {
  if (--live_ != 0 || waiter_ == nullptr || !waits::claim(*waiter_, task::wake_reason::data)) return nullptr;
  base::step<"scope.close.by_the_last">([&] { closed_ = true; });  // G2
  return std::exchange(waiter_, nullptr)->who;
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
