// A channel's operations as waitables: arms of a select, and waits that have to look more than once.
#include "chan/core.hpp"

namespace weft::inline v1::chan {

void operation::lock() noexcept { channel_->lock(); }
void operation::unlock() noexcept { channel_->unlock(); }
base::lock* operation::own_lock() noexcept { return &channel_->own_lock(); }

// ---- send -----------------------------------------------------------------------------------------------------------

bool send_operation::try_complete() noexcept {
  if (!channel_->send_quickly(entry_.slot)) return false;
  entry_.result = status::done;
  return true;
}

void send_operation::freeze() noexcept { (void)channel_->expect_wait(side::writer); }

bool send_operation::try_locked() noexcept {
  if (!channel_->may_send()) return false;
  try {
    pending_ = channel_->send(entry_.slot, entry_.admitted, nullptr);
    return pending_.how != status::would_block;
  } catch (...) {
    failed_ = std::current_exception();
    return true;
  }
}

bool send_operation::publish(waits::node& n) noexcept {
  if (channel_->expect_wait(side::writer)) {
    pending_ = channel_->send(entry_.slot, entry_.admitted, n.who);  // small elements: it does not throw
    if (pending_.how != status::would_block) {
      channel_->unpublish(side::writer, entry_);  // takes the announcement back
      return false;
    }
  }
  channel_->publish(side::writer, entry_);
  return true;
}

void send_operation::unpublish(waits::node&) noexcept { channel_->unpublish(side::writer, entry_); }

void send_operation::settle() {
  if (failed_ != nullptr) std::rethrow_exception(std::exchange(failed_, nullptr));
  entry_.result = pending_.how;
  channel_->settle_send(entry_.slot, pending_);
}

// ---- receive --------------------------------------------------------------------------------------------------------

bool receive_operation::try_complete() noexcept {
  if (!channel_->receive_quickly(entry_.slot)) return false;
  entry_.result = status::done;
  return true;
}

void receive_operation::freeze() noexcept { (void)channel_->expect_wait(side::reader); }

bool receive_operation::try_locked() noexcept {
  if (!channel_->may_receive()) return false;
  try {
    pending_ = channel_->receive(entry_.slot, nullptr);
    return pending_.how != status::would_block;
  } catch (...) {
    failed_ = std::current_exception();
    return true;
  }
}

bool receive_operation::publish(waits::node& n) noexcept {
  if (channel_->expect_wait(side::reader)) {
    pending_ = channel_->receive(entry_.slot, n.who);  // small elements: it does not throw
    if (pending_.how != status::would_block) {
      channel_->unpublish(side::reader, entry_);  // takes the announcement back
      return false;
    }
  }
  channel_->publish(side::reader, entry_);
  return true;
}

void receive_operation::unpublish(waits::node&) noexcept { channel_->unpublish(side::reader, entry_); }

void receive_operation::settle() {
  if (failed_ != nullptr) std::rethrow_exception(std::exchange(failed_, nullptr));
  entry_.result = pending_.how;
  channel_->settle_receive(entry_.slot, pending_);
}

// ---- death ---------------------------------------------------------------------------------------------------------

bool death_operation::try_locked() noexcept {
  if (!channel_->is_dead(watcher_)) return false;
  entry_.result = status::closed;
  return true;
}

bool death_operation::publish(waits::node&) noexcept {
  channel_->publish_watcher(watcher_, entry_);
  return true;
}

void death_operation::unpublish(waits::node&) noexcept { channel_->unpublish_watcher(watcher_, entry_); }

}  // namespace weft::inline v1::chan
