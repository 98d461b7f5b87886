// The operations on a channel as waitables: for arms of a select, and for waits that have to look more than once.
#include "chan/core.hpp"

namespace weft::inline v1::chan {

base::lock* operation::own_lock() noexcept { return &entry_.channel->own_lock(); }

// ---- send and receive ----------------------------------------------------------------------------------------------

template <side Side>
bool transfer_operation<Side>::try_complete() noexcept {
  if (!entry_.channel->try_quickly<Side>(entry_.slot)) return false;
  entry_.set_result(status::done);
  return true;
}

// Only the fast path works without the lock. unpublish() opens it again.
template <side Side>
void transfer_operation<Side>::freeze() noexcept {
  (void)entry_.channel->expect_wait(Side);
}

// An exception of the element's move counts as the end of the operation, and settle() throws it, without the lock.
template <side Side>
bool transfer_operation<Side>::try_locked() noexcept {
  if (!entry_.channel->may_complete<Side>()) return false;
  try {
    pending_ = entry_.channel->attempt_locked<Side>(entry_.slot, entry_.is_admitted(), nullptr);
    return pending_.how != status::would_block;
  } catch (...) {
    failed_ = std::current_exception();
    return true;
  }
}

template <side Side>
bool transfer_operation<Side>::publish(waits::node& n) noexcept {
  return entry_.channel->publish_unless_ready<Side>(entry_, pending_, n.who);
}

template <side Side>
void transfer_operation<Side>::unpublish(waits::node&) noexcept {
  entry_.channel->unpublish(Side, entry_);
}

template <side Side>
void transfer_operation<Side>::settle() {
  if (failed_ != nullptr) std::rethrow_exception(std::exchange(failed_, nullptr));
  entry_.set_result(pending_.how);
  entry_.channel->settle<Side>(entry_.slot, pending_);
}

template class transfer_operation<side::writer>;
template class transfer_operation<side::reader>;

// ---- death ---------------------------------------------------------------------------------------------------------

bool death_operation::try_locked() noexcept {
  if (!entry_.channel->is_dead(watcher_)) return false;
  entry_.set_result(status::closed);
  return true;
}

bool death_operation::publish(waits::node&) noexcept {
  entry_.channel->publish_watcher(watcher_, entry_);
  return true;
}

void death_operation::unpublish(waits::node&) noexcept { entry_.channel->unpublish_watcher(watcher_, entry_); }

}  // namespace weft::inline v1::chan
