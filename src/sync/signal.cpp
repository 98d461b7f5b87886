#include "sync/signal.hpp"

#include "base/check.hpp"
#include "sync/caller.hpp"

namespace weft::inline v1::locks {

void signal_core::set_for_one() noexcept {
  lock();
  waits::node* n = waiters_.claim_first(task::wake_reason::data);
  if (n == nullptr) base::step<"signal.remember">([&] { set_ = true; });
  unlock();
  if (n != nullptr) waits::resume(*n->who);
}

void signal_core::set_for_all() noexcept {
  claimed_waiters all;
  lock();
  set_ = true;
  base::step<"signal.set_for_all">([&] { waiters_.claim_all(all); });
  unlock();
  all.resume();
}

void signal_core::wake_present() noexcept {
  claimed_waiters all;
  lock();
  base::step<"signal.wake_present">([&] { waiters_.claim_all(all); });
  unlock();
  all.resume();
}

void signal_core::reset() noexcept {
  base::lock_guard guard(lock_);
  set_ = false;
}

bool signal_core::is_set() noexcept {
  base::lock_guard guard(lock_);
  return set_;
}

// ---- waiting --------------------------------------------------------------------------------------------------------

bool signal_operation::try_locked() noexcept {
  return base::check<"signal.look">(round_ != no_round ? signal_->round() != round_ : signal_->take_flag(takes_));
}
bool signal_operation::publish(waits::node&) noexcept {
  signal_->publish(node_);
  return true;
}
void signal_operation::unpublish(waits::node&) noexcept { signal_->unpublish(node_); }
base::lock* signal_operation::own_lock() noexcept { return &signal_->own_lock(); }

signal_core& signal_room::core() noexcept { return core_in<signal_core>(room_); }
signal_room::~signal_room() {
  base::require(!core().is_waited_for(),
                "an event, notify, latch or barrier is destroyed while it is waited for; let it live until every task "
                "that uses it has ended");
}

void wait_for(signal_core& s, until_set u, const waits::wait_kind& kind, std::source_location where) {
  signal_operation op(s, u, kind);
  complete(op, where);
}
bool wait_until(signal_core& s, until_set u, const waits::wait_kind& kind, std::chrono::steady_clock::time_point when,
                std::source_location where) {
  signal_operation op(s, u, kind);
  return complete_until(op, when, where);
}
void wait_for(signal_core& s, until_round_ends u, const waits::wait_kind& kind, std::source_location where) {
  signal_operation op(s, u, kind);
  complete(op, where);
}
void set_for_one(signal_core& s) noexcept { s.set_for_one(); }
void set_for_all(signal_core& s) noexcept { s.set_for_all(); }
void wake_present(signal_core& s) noexcept { s.wake_present(); }
void reset(signal_core& s) noexcept { s.reset(); }
bool is_set(signal_core& s) noexcept { return s.is_set(); }

}  // namespace weft::inline v1::locks
