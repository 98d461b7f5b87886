// What the channel templates call: the operations of one channel, by the shortest way for its kind.
#include "chan/calls.hpp"

#include "chan/core.hpp"
#include "sched/environment.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/errors.hpp>

namespace weft::inline v1::chan {
namespace {

// One wait of a task for one operation: what park_locked() needs of a waitable, and no more.
template <side Side>
class single_wait {
 public:
  single_wait(core& c, void* slot) noexcept : channel_(c) { entry_.slot = slot; }
  bool publish(waits::node& n) noexcept {
    if (channel_.expect_wait(Side)) {
      pending_ = attempt_on(channel_, n.who);
      if (pending_.how != status::would_block) {
        channel_.unpublish(Side, entry_);  // takes the announcement back
        return false;
      }
    }
    channel_.publish(Side, entry_);
    return true;
  }
  void unpublish(waits::node&) noexcept { channel_.unpublish(Side, entry_); }
  void lock() noexcept { channel_.lock(); }
  void unlock() noexcept { channel_.unlock(); }
  [[nodiscard]] base::lock& own_lock() noexcept { return channel_.own_lock(); }

  [[nodiscard]] entry& waiting() noexcept { return entry_; }
  [[nodiscard]] status settle() {
    if constexpr (Side == side::writer)
      channel_.settle_send(entry_.slot, pending_);
    else
      channel_.settle_receive(entry_.slot, pending_);
    return pending_.how;
  }

 private:
  attempt attempt_on(core& c, const task::parkable* self) noexcept {  // small elements: it does not throw
    if constexpr (Side == side::writer)
      return c.send(entry_.slot, false, self);
    else
      return c.receive(entry_.slot, self);
  }
  core& channel_;
  entry entry_;
  attempt pending_;
};

// With the lock held: the operation cannot complete now.
template <class Operation, side Side>
[[gnu::always_inline]] inline status park(sched::worker& on, core& c, void* slot, std::source_location where) {
  task::record& self = *on.current();
  waits::check_may_suspend(1, where);
  waits::note_site(self, Side == side::writer ? "send" : "receive", &c, where);
  single_wait<Side> w(c, slot);
  switch (waits::detail::park_locked(on, self, w, w.waiting(), self.shields == 0 && !on.is_unwinding())) {
    case waits::detail::round::settle: return w.settle();
    case waits::detail::round::completed: return w.waiting().result;
    case waits::detail::round::cancelled: waits::throw_cancelled();
    case waits::detail::round::again: break;
  }
  return complete_slowly<Operation>(c, slot, w.waiting().admitted, where);
}

// Takes the lock and leaves it held, unless the move of an element throws.
template <side Side>
[[gnu::always_inline]] inline attempt lock_and_attempt(core& c, void* slot) {
  c.lock();
  try {
    return Side == side::writer ? c.send(slot, false, nullptr) : c.receive(slot, nullptr);
  } catch (...) {
    c.unlock();
    throw;
  }
}

// Under the lock, and with a park if need be.
[[gnu::noinline]] status send_locked(sched::worker* on, core& c, void* slot, std::source_location where) {
  const attempt a = lock_and_attempt<side::writer>(c, slot);
  if (a.how == status::would_block) return park<send_operation, side::writer>(*on, c, slot, where);
  c.unlock();
  c.settle_send(slot, a);
  return a.how;
}

[[gnu::noinline]] status receive_locked(sched::worker* on, core& c, void* slot, std::source_location where) {
  const attempt a = lock_and_attempt<side::reader>(c, slot);
  if (a.how == status::would_block) return park<receive_operation, side::reader>(*on, c, slot, where);
  c.unlock();
  c.settle_receive(slot, a);
  return a.how;
}

[[gnu::noinline]] status try_send_locked(core& c, void* slot) {
  const attempt a = lock_and_attempt<side::writer>(c, slot);
  c.unlock();
  c.settle_send(slot, a);
  return a.how;
}

[[gnu::noinline]] status try_receive_locked(core& c, void* slot) {
  const attempt a = lock_and_attempt<side::reader>(c, slot);
  c.unlock();
  c.settle_receive(slot, a);
  return a.how;
}

}  // namespace

status send_buffered(core& c, void* slot, std::source_location where) {
  sched::worker* on = waits::undisturbed();
  return on != nullptr ? send_locked(on, c, slot, where) : complete_slowly<send_operation>(c, slot, false, where);
}
status receive_buffered(core& c, void* slot, std::source_location where) {
  sched::worker* on = waits::undisturbed();
  return on != nullptr ? receive_locked(on, c, slot, where) : complete_slowly<receive_operation>(c, slot, false, where);
}

status send(core& c, void* slot, std::source_location where) {
  if (!c.has_fast_path()) return send_without_ring(c, slot, where);
  sched::worker* on = waits::undisturbed();
  if (on == nullptr) [[unlikely]]
    return complete_slowly<send_operation>(c, slot, false, where);
  if (c.fast_path().try_send(*static_cast<const words*>(slot))) return status::done;
  return send_locked(on, c, slot, where);
}

status receive(core& c, void* slot, std::source_location where) {
  if (!c.has_fast_path()) return receive_without_ring(c, slot, where);
  sched::worker* on = waits::undisturbed();
  if (on == nullptr) [[unlikely]]
    return complete_slowly<receive_operation>(c, slot, false, where);
  if (c.fast_path().try_receive(*static_cast<words*>(slot))) return status::done;
  return receive_locked(on, c, slot, where);
}

status try_send(core& c, void* slot) {
  if (c.send_quickly(slot)) return status::done;
  return c.may_send() ? try_send_locked(c, slot) : status::would_block;
}

status try_receive(core& c, void* slot) {
  if (c.receive_quickly(slot)) return status::done;
  return c.may_receive() ? try_receive_locked(c, slot) : status::would_block;
}

core* make(const element& e, kind k, std::size_t capacity) {
  constexpr std::size_t most = std::size_t{1} << 40;
  if (k == kind::bounded && capacity > most)
    weft::detail::throw_usage("a channel's capacity is at most 2^40; weft::unlimited has no limit");
  static const bool always_lock = sched::flag_from_environment("WEFT_CHAN_NO_LOCKFREE");
  return new core(e, k, capacity, !always_lock);
}
void add_end(core& c, side s) noexcept { c.add_end(s); }
void drop_end(core* c, side s) noexcept {
  if (c->drop_end(s)) delete c;
}

void close(core& c, side by, std::exception_ptr why) noexcept { c.close(by, std::move(why)); }
bool is_closed(core& c) noexcept { return c.is_closed(); }
bool is_drained(core& c) noexcept { return c.is_drained(); }
std::exception_ptr error_of(core& c, side by) noexcept { return c.error_of(by); }
counts counts_of(core& c) noexcept { return c.count(); }
std::size_t size_of(core& c) noexcept { return c.size(); }
std::size_t capacity_of(const core& c) noexcept { return c.capacity(); }

}  // namespace weft::inline v1::chan
