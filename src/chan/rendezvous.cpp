// The short way through a channel without a buffer: a sender and a receiver meet, and whoever comes second moves the value.
//
// What core::send and core::receive do under the lock, for one who is no arm of a select: C1 to C3 of core.hpp hold here as
// there. Functions of their own because they are the whole of a ping-pong. On the usual way each calls nothing but the next one, at
// its end, or the park, after which it needs nothing but its record: so hardly a register is saved, and of a parked task's frames
// little is touched.
#include <new>

#include "chan/calls.hpp"

namespace weft::inline v1::chan {
namespace {

// What end_wait() needs of a waitable.
template <side Side>
class rendezvous_wait {
 public:
  explicit rendezvous_wait(core& c) noexcept : channel_(c) {}
  void unpublish(waits::node& n) noexcept { channel_.unpublish(Side, static_cast<entry&>(n)); }
  void lock() noexcept { channel_.lock(); }
  void unlock() noexcept { channel_.unlock(); }

 private:
  core& channel_;
};

constexpr const char* sends = "send";
constexpr const char* receives = "receive";
constexpr const char* reason_of(side s) noexcept { return s == side::writer ? sends : receives; }

entry& entry_of(task::record& self) noexcept { return *std::launder(reinterpret_cast<entry*>(self.wait_room)); }

// Not served by a partner. What the wait was for is in the record, and so need not be kept in registers across the park.
template <class Operation, side Side>
[[gnu::noinline]] status look_again(task::record& self) {
  if constexpr (base::checked_build)
    base::require(self.waits_for.load(base::relaxed) == reason_of(Side), "what a task waits for was noted and kept");
  core& c = *static_cast<core*>(self.waits_on.load(base::relaxed));
  const std::source_location where = self.waits_at.load(base::relaxed);
  entry& e = entry_of(self);
  rendezvous_wait<Side> w(c);
  const bool interruptible = self.shields == 0 && !sched::this_worker()->is_unwinding();
  if (waits::detail::end_wait(self, w, e, interruptible) == waits::detail::round::cancelled) waits::throw_cancelled();
  return complete_slowly<Operation>(c, e.slot, e.admitted, where);
}

// With the lock held, and nobody there to meet.
template <class Operation, side Side>
[[gnu::noinline]] status wait_for_partner(sched::worker& on, core& c, void* slot, std::source_location where) {
  using waits::detail::begun;
  task::record& self = *on.current();
  waits::check_may_suspend(1, where);
  waits::note_site(self, reason_of(Side), &c, where);
  const begun how =
      waits::detail::begin_wait(self, self.shields == 0 && !on.is_unwinding(), [&](task::ticket t) noexcept {
        static_assert(sizeof(entry) <= task::record::wait_room_size);
        c.publish_new(Side, *::new (self.wait_room) entry{{.who = &self, .ticket = t, .linked = true}, slot});
        return true;
      });
  if (how == begun::cancelled) [[unlikely]] {
    c.unlock();
    waits::throw_cancelled();
  }
  sched::worker::park(on, nullptr, &c.own_lock());
  // Perhaps on another worker from here on.
  return waits::detail::was_served(self) ? entry_of(self).result : look_again<Operation, Side>(self);
}

// The partner is claimed, the lock free.
template <side Side>
[[gnu::noinline]] status exchange_any(entry& partner, core& c, void* slot) {
  if constexpr (Side == side::writer)
    c.settle_send(slot, {status::done, &partner});
  else
    c.settle_receive(slot, {status::done, &partner});
  return status::done;
}

template <side Side>
[[gnu::always_inline]] inline status exchange_with(entry& partner, sched::worker& on, core& c, void* slot) {
  if (!c.moves_words()) [[unlikely]]
    return exchange_any<Side>(partner, c, slot);
  if constexpr (Side == side::writer)
    *static_cast<words*>(partner.slot) = *static_cast<words*>(slot);
  else
    *static_cast<words*>(slot) = *static_cast<words*>(partner.slot);
  partner.result = status::done;
  waits::resume(on, *partner.who);
  return status::done;
}

// The same, when somebody has to be woken who waits for the lock.
template <side Side>
[[gnu::noinline]] status wake_and_exchange(entry& partner, core& c, void* slot) {
  base::lock::wake_next(&c.own_lock());
  return exchange_any<Side>(partner, c, slot);
}

[[gnu::noinline]] status leave_closed(core& c) noexcept {
  c.unlock();
  return status::closed;
}

template <class Operation, side Side>
[[gnu::always_inline]] inline status meet_locked(sched::worker& on, core& c, void* slot, std::source_location where) {
  // Closed to sends; waiting senders were admitted and are received (LS-C1).
  if (Side == side::writer && base::check<"channel.send.closed">(c.is_closed())) [[unlikely]]
    return leave_closed(c);
  if (entry* partner = c.claim_partner(opposite(Side))) {
    if (c.own_lock().release_first()) [[unlikely]]
      return wake_and_exchange<Side>(*partner, c, slot);
    return exchange_with<Side>(*partner, on, c, slot);
  }
  if (Side == side::reader && c.is_closed()) [[unlikely]]
    return leave_closed(c);
  return wait_for_partner<Operation, Side>(on, c, slot, where);
}

template <class Operation, side Side>
[[gnu::noinline]] status meet_slowly(sched::worker& on, core& c, void* slot, std::source_location where) {
  c.lock();
  return meet_locked<Operation, Side>(on, c, slot, where);
}

template <class Operation, side Side>
[[gnu::always_inline]] inline status meet(core& c, void* slot, std::source_location where) {
  c.expect_partner(opposite(Side));
  sched::worker* on = waits::undisturbed();
  if (on == nullptr) [[unlikely]]
    return complete_slowly<Operation>(c, slot, false, where);
  if (!c.own_lock().acquire_if_free()) [[unlikely]]
    return meet_slowly<Operation, Side>(*on, c, slot, where);
  return meet_locked<Operation, Side>(*on, c, slot, where);
}

}  // namespace

status send_without_ring(core& c, void* value, std::source_location where) {
  return c.is_rendezvous() ? meet<send_operation, side::writer>(c, value, where) : send_buffered(c, value, where);
}
status receive_without_ring(core& c, void* target, std::source_location where) {
  return c.is_rendezvous() ? meet<receive_operation, side::reader>(c, target, where)
                           : receive_buffered(c, target, where);
}

}  // namespace weft::inline v1::chan
