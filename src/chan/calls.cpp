// What the channel templates call: the operations on one channel, each by the shortest way for the channel's kind.
#include "chan/calls.hpp"

#include "chan/core.hpp"
#include "sched/environment.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/errors.hpp>

namespace weft::inline v1::chan {
namespace {

// One wait of a task for one operation. It has only those functions of a waitable that enter() and woken() of wait.hpp
// call: no virtual functions, and no way to try again.
template <side Side>
class single_wait {
 public:
  single_wait(core& c, void* slot) noexcept {
    entry_.slot = slot;
    entry_.channel = &c;
  }
  [[nodiscard]] bool publish(waits::node& n) noexcept {
    return entry_.channel->template publish_unless_ready<Side>(entry_, pending_, n.who);
  }
  void unpublish(waits::node&) noexcept { entry_.channel->unpublish(Side, entry_); }
  [[nodiscard]] base::lock& own_lock() noexcept { return entry_.channel->own_lock(); }
  [[nodiscard]] waits::subject what() const noexcept {
    return {Side == side::writer ? &send_kind : &receive_kind, entry_.channel};
  }

  [[nodiscard]] entry& waiting() noexcept { return entry_; }
  [[nodiscard]] status settle() {
    entry_.channel->template settle<Side>(entry_.slot, pending_);
    return pending_.how;
  }

 private:
  entry entry_;
  attempt pending_;
};

// Called with the lock held, when the operation cannot complete now. The lock is free afterwards.
template <side Side>
[[gnu::always_inline]] inline status park(sched::worker& on, core& c, void* slot, std::source_location where) {
  using waits::step;
  waits::check_may_suspend(1, where);
  waits::task_waiter self(on, where);
  single_wait<Side> w(c, slot);
  waits::wait<single_wait<Side>> waiting(w, w.waiting(), waits::can_be_cancelled(on, self.parkable()));
  step next = waiting.enter(self);
  if (next == step::park) [[likely]] {
    self.park(w);
    next = waiting.woken(self.parkable());
  }
  if (next == step::completed) [[likely]]
    return w.waiting().result();
  if (next == step::settle) return w.settle();
  if (next == step::cancelled) waits::throw_cancelled();
  return complete_slowly<Side>(c, slot, w.waiting().result(), where);
}

// Takes the lock and leaves it held, unless the move of an element throws.
template <side Side>
[[gnu::always_inline]] inline attempt lock_and_attempt(core& c, void* slot) {
  c.lock();
  try {
    return c.attempt_locked<Side>(slot, false, nullptr);
  } catch (...) {
    c.unlock();
    throw;
  }
}

// Completes the operation under the lock, or parks until somebody else has completed it.
template <side Side>
[[gnu::noinline]] status transfer_locked(sched::worker* on, core& c, void* slot, std::source_location where) {
  const attempt a = lock_and_attempt<Side>(c, slot);
  if (a.how == status::would_block) return park<Side>(*on, c, slot, where);
  c.unlock();
  c.settle<Side>(slot, a);
  return a.how;
}

template <side Side>
[[gnu::noinline]] status try_locked(core& c, void* slot) {
  const attempt a = lock_and_attempt<Side>(c, slot);
  c.unlock();
  c.settle<Side>(slot, a);
  return a.how;
}

template <side Side>
[[gnu::always_inline]] inline status transfer(core& c, void* slot, std::source_location where) {
  if (!c.has_fast_path()) return transfer_without_ring<Side>(c, slot, where);
  sched::worker* on = waits::undisturbed();
  if (on == nullptr) [[unlikely]]
    return complete_slowly<Side>(c, slot, status::pending, where);
  if (c.try_fast<Side>(slot)) return status::done;
  return transfer_locked<Side>(on, c, slot, where);
}

template <side Side>
[[gnu::always_inline]] inline status try_transfer(core& c, void* slot) {
  if (c.try_quickly<Side>(slot)) return status::done;
  return c.may_complete<Side>() ? try_locked<Side>(c, slot) : status::would_block;
}

}  // namespace

template <side Side>
status transfer_buffered(core& c, void* slot, std::source_location where) {
  sched::worker* on = waits::undisturbed();
  if (on == nullptr) [[unlikely]]
    return complete_slowly<Side>(c, slot, status::pending, where);
  return transfer_locked<Side>(on, c, slot, where);
}
template status transfer_buffered<side::writer>(core&, void*, std::source_location);
template status transfer_buffered<side::reader>(core&, void*, std::source_location);

status send(core& c, void* slot, std::source_location where) { return transfer<side::writer>(c, slot, where); }
status receive(core& c, void* slot, std::source_location where) { return transfer<side::reader>(c, slot, where); }
status try_send(core& c, void* slot) { return try_transfer<side::writer>(c, slot); }
status try_receive(core& c, void* slot) { return try_transfer<side::reader>(c, slot); }

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
