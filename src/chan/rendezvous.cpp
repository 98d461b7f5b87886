// The short way through a channel without a buffer: a sender and a receiver meet, and the second one moves the value.
//
// These functions do what core::send and core::receive do under the lock, for an operation that is no arm of a select.
// chan.C1 to chan.C3 of core.hpp hold here as well. They are functions of their own because a ping-pong consists of
// nothing else. On the usual way each function calls only the next one, at its end, or the park, after which it needs
// nothing but its task's record. So hardly a register is saved, and little of a parked task's frames is touched.
#include <new>

#include "chan/calls.hpp"

namespace weft::inline v1::chan {
namespace {

entry& entry_of(task::record& self) noexcept { return *std::launder(reinterpret_cast<entry*>(self.wait_room())); }

// A wait for a partner. Its entry is made in the waiting task's record, and nothing else of it is kept across the park.
template <side Side>
class partner_wait {
 public:
  partner_wait(core& c, void* slot, task::record& self) noexcept : channel_(c), slot_(slot), self_(self) {}

  [[nodiscard]] bool publish_new(task::ticket t) noexcept {
    static_assert(sizeof(entry) <= task::record::wait_room_size);
    channel_.publish_new(
        Side, *::new (self_.wait_room()) entry{{.who = &self_, .ticket = t, .linked = true}, slot_, &channel_});
    return true;
  }
  void unpublish(waits::node& n) noexcept { channel_.unpublish(Side, static_cast<entry&>(n)); }
  [[nodiscard]] base::lock& own_lock() noexcept { return channel_.own_lock(); }
  [[nodiscard]] waits::subject what() const noexcept {
    return {Side == side::writer ? &send_kind : &receive_kind, &channel_};
  }

 private:
  core& channel_;
  void* slot_;
  task::record& self_;
};

// Apart from look_again(), which the cancellation passes: a frame with regions that must not throw would make the
// unwinder stop there to look.
template <side Side>
[[gnu::noinline]] waits::step withdraw(task::record& self) noexcept {
  entry& e = entry_of(self);
  partner_wait<Side> w(*e.channel, e.slot, self);
  waits::wait<partner_wait<Side>> waiting(w, e, waits::can_be_cancelled(*sched::this_worker(), self));
  return waiting.withdraw(self);
}

// Goes on after a park that no partner has ended. What the wait was for is in its entry, and so need not be kept in
// registers across the park.
template <side Side>
[[gnu::noinline]] status look_again(task::record& self) {
  if (withdraw<Side>(self) == waits::step::cancelled) waits::throw_cancelled();
  entry& e = entry_of(self);
  return complete<Side>(*e.channel, e.slot, e.result(), {.keeps_site = true});
}

template <side Side, class Waiter>
[[gnu::always_inline]] inline status park_for_partner(sched::worker& on, task::record& self, core& c, void* slot,
                                                      std::source_location where, bool interruptible) {
  Waiter waiter(on, self, where);
  partner_wait<Side> w(c, slot, self);
  waits::wait<partner_wait<Side>> waiting(w, entry_of(self), interruptible);
  if (waiting.enter(waiter) != waits::step::park) [[unlikely]]
    waits::throw_cancelled();  // the only other step, because publish_new() never refuses
  sched::worker::park(on, nullptr, &c.own_lock());
  // From here on the task may be on another worker, so `on` must not be used.
  return waits::was_served(self) ? entry_of(self).result() : look_again<Side>(self);
}

// Called with the lock held, when nobody is there to meet. The class of the waiter says what it does at the suspension
// gate: in the usual case, unhindered_waiter, nothing is called before the park, and so hardly a register is saved. The
// branch on can_be_cancelled() is outside of the park, so that each of its two copies adds a constant to the word.
template <side Side, class Waiter>
[[gnu::noinline]] status wait_for_partner(sched::worker& on, core& c, void* slot, std::source_location where) {
  waits::check_may_suspend(1, where);
  task::record& self = *on.current();
  if (waits::can_be_cancelled(on, self)) [[likely]]
    return park_for_partner<Side, Waiter>(on, self, c, slot, where, true);
  return park_for_partner<Side, Waiter>(on, self, c, slot, where, false);
}

// The exchanges: the partner is claimed and the lock is free. This one is for elements of any type.
template <side Side>
[[gnu::noinline]] status exchange_any(entry& partner, core& c, void* slot) {
  c.settle<Side>(slot, {status::done, &partner});
  return status::done;
}

// Elements of one or two words are copied here, and a partner of the same runtime goes straight to this worker's
// queues.
template <side Side>
[[gnu::always_inline]] inline status exchange_with(entry& partner, sched::worker& on, core& c, void* slot) {
  if (!c.moves_words()) [[unlikely]]
    return exchange_any<Side>(partner, c, slot);
  if constexpr (Side == side::writer)
    *static_cast<words*>(partner.slot) = *static_cast<words*>(slot);
  else
    *static_cast<words*>(slot) = *static_cast<words*>(partner.slot);
  partner.set_result(status::done);
  waits::resume(on, *partner.who);
  return status::done;
}

// The rare case that a thread sleeps on the lock: it is woken before the exchange.
template <side Side>
[[gnu::noinline]] status wake_and_exchange(entry& partner, core& c, void* slot) {
  base::lock::wake_next(&c.own_lock());
  return exchange_any<Side>(partner, c, slot);
}

[[gnu::noinline]] status leave_closed(core& c) noexcept {
  c.unlock();
  return status::closed;
}

template <side Side>
[[gnu::always_inline]] inline status meet_locked(sched::worker& on, core& c, void* slot, std::source_location where) {
  // A closed channel takes no more sends. Senders that waited before the close were admitted, and a receiver still
  // meets them (LS-C1).
  if (Side == side::writer && base::check<"channel.send.closed">(c.is_closed())) [[unlikely]]
    return leave_closed(c);
  if (entry* partner = c.claim_partner(opposite(Side))) {
    if (c.own_lock().release_first()) [[unlikely]]
      return wake_and_exchange<Side>(*partner, c, slot);
    return exchange_with<Side>(*partner, on, c, slot);
  }
  if (Side == side::reader && c.is_closed()) [[unlikely]]
    return leave_closed(c);
  return on.is_gate_open() ? wait_for_partner<Side, waits::unhindered_waiter>(on, c, slot, where)
                           : wait_for_partner<Side, waits::task_waiter>(on, c, slot, where);
}

template <side Side>
[[gnu::noinline]] status meet_slowly(sched::worker& on, core& c, void* slot, std::source_location where) {
  c.lock();
  return meet_locked<Side>(on, c, slot, where);
}

template <side Side>
[[gnu::always_inline]] inline status meet(core& c, void* slot, std::source_location where) {
  c.expect_partner(opposite(Side));
  sched::worker* on = waits::undisturbed();
  if (on == nullptr) [[unlikely]]
    return complete_slowly<Side>(c, slot, status::pending, where);
  if (!c.own_lock().acquire_if_free()) [[unlikely]]
    return meet_slowly<Side>(*on, c, slot, where);
  return meet_locked<Side>(*on, c, slot, where);
}

}  // namespace

template <side Side>
status transfer_without_ring(core& c, void* slot, std::source_location where) {
  return c.is_rendezvous() ? meet<Side>(c, slot, where) : transfer_buffered<Side>(c, slot, where);
}
template status transfer_without_ring<side::writer>(core&, void*, std::source_location);
template status transfer_without_ring<side::reader>(core&, void*, std::source_location);

}  // namespace weft::inline v1::chan
