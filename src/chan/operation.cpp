// A channel's operations: as waits of their own, and as arms of a select.
#include "chan/core.hpp"
#include "sched/environment.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/errors.hpp>

namespace weft::inline v1::chan {

void operation::lock() noexcept { channel_->lock(); }
void operation::unlock() noexcept { channel_->unlock(); }

// ---- send -----------------------------------------------------------------------------------------------------------

bool send_operation::try_complete() noexcept {
  if (!channel_->send_quickly(entry_)) return false;
  entry_.result = status::done;
  return true;
}

bool send_operation::try_locked() noexcept {
  try {
    pending_ = channel_->send(entry_, nullptr);
    return pending_.how != status::would_block;
  } catch (...) {
    failed_ = std::current_exception();
    return true;
  }
}

bool send_operation::publish(wait::node& n) noexcept {
  if (channel_->expect_wait(side::writer)) {
    pending_ = channel_->send(entry_, n.who);  // small elements: it does not throw
    if (pending_.how != status::would_block) {
      channel_->unpublish(side::writer, entry_);  // takes the announcement back
      return false;
    }
  }
  channel_->publish(side::writer, entry_);
  return true;
}

void send_operation::unpublish(wait::node&) noexcept { channel_->unpublish(side::writer, entry_); }

void send_operation::settle() {
  if (failed_ != nullptr) std::rethrow_exception(std::exchange(failed_, nullptr));
  channel_->settle_send(entry_, pending_);
}

// ---- receive --------------------------------------------------------------------------------------------------------

bool receive_operation::try_complete() noexcept {
  if (!channel_->receive_quickly(entry_)) return false;
  entry_.result = status::done;
  return true;
}

bool receive_operation::try_locked() noexcept {
  try {
    pending_ = channel_->receive(entry_, nullptr);
    return pending_.how != status::would_block;
  } catch (...) {
    failed_ = std::current_exception();
    return true;
  }
}

bool receive_operation::publish(wait::node& n) noexcept {
  if (channel_->expect_wait(side::reader)) {
    pending_ = channel_->receive(entry_, n.who);  // small elements: it does not throw
    if (pending_.how != status::would_block) {
      channel_->unpublish(side::reader, entry_);  // takes the announcement back
      return false;
    }
  }
  channel_->publish(side::reader, entry_);
  return true;
}

void receive_operation::unpublish(wait::node&) noexcept { channel_->unpublish(side::reader, entry_); }

void receive_operation::settle() {
  if (failed_ != nullptr) std::rethrow_exception(std::exchange(failed_, nullptr));
  channel_->settle_receive(entry_, pending_);
}

// ---- death ---------------------------------------------------------------------------------------------------------

bool death_operation::try_locked() noexcept {
  if (!channel_->is_dead(watcher_)) return false;
  entry_.result = status::closed;
  return true;
}

bool death_operation::publish(wait::node&) noexcept {
  channel_->publish_watcher(watcher_, entry_);
  return true;
}

void death_operation::unpublish(wait::node&) noexcept { channel_->unpublish_watcher(watcher_, entry_); }

// ---- what the templates call -----------------------------------------------------------------------------------------

namespace {

template <class Operation>
status complete(core& c, void* slot, std::source_location where) {
  Operation op(&c);
  op.aim(slot);
  if (wait::fiber_wait(op, op.node(), {.interruptible = true, .where = where}) == wait::outcome::cancelled)
    wait::throw_cancelled();
  return op.result();
}

template <class Operation>
status attempt_once(core& c, void* slot) {
  Operation op(&c);
  op.aim(slot);
  if (op.try_complete()) return op.result();
  c.lock();
  const bool completed = op.try_locked();
  c.unlock();
  if (!completed) return status::would_block;
  op.settle();
  return op.result();
}

}  // namespace

core* make(const element& e, kind k, std::size_t capacity) {
  constexpr std::size_t most = std::size_t{1} << 40;
  if (capacity > most) weft::detail::throw_usage("a channel's capacity is at most 2^40; weft::unlimited has no limit");
  static const bool always_lock = sched::flag_from_environment("WEFT_CHAN_NO_LOCKFREE");
  return new core(e, k, capacity, !always_lock);
}
void add_end(core& c, side s) noexcept { c.add_end(s); }
void drop_end(core* c, side s) noexcept {
  if (c->drop_end(s)) delete c;
}

status send(core& c, void* value, std::source_location where) { return complete<send_operation>(c, value, where); }
status receive(core& c, void* target, std::source_location where) {
  return complete<receive_operation>(c, target, where);
}
status try_send(core& c, void* value) { return attempt_once<send_operation>(c, value); }
status try_receive(core& c, void* target) { return attempt_once<receive_operation>(c, target); }

void close(core& c, side by, std::exception_ptr why) noexcept { c.close(by, std::move(why)); }
bool is_closed(core& c) noexcept { return c.is_closed(); }
std::exception_ptr error_of(core& c, side by) noexcept { return c.error_of(by); }
counts counts_of(core& c) noexcept { return c.count(); }
std::size_t capacity_of(const core& c) noexcept { return c.capacity(); }

}  // namespace weft::inline v1::chan
