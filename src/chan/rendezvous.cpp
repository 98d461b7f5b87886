// The short way through a channel without a buffer: a sender and a receiver meet, and whoever comes second moves the value.
//
// What core::send and core::receive do under the lock, for one who is no arm of a select: C1 to C3 of core.hpp hold here as
// there. A function of its own because it is the whole of a ping-pong, some two hundred instructions; the claim and the park are
// two functions, so that each saves the registers that it needs, and a parked task has only the second's frame.
#include <new>

#include "chan/calls.hpp"

namespace weft::inline v1::chan {
namespace {

// What park_locked() needs of a waitable.
template <side Side>
class rendezvous_wait {
 public:
  rendezvous_wait(task::record& self, core& c, void* slot) noexcept
      : channel_(c),
        entry_(*::new(self.wait_room) entry) {
    static_assert(sizeof(entry) <= task::record::wait_room_size);
    entry_.slot = slot;
  }
  bool publish(wait::node&) noexcept {
    channel_.publish(Side, entry_);
    return true;
  }
  void unpublish(wait::node&) noexcept { channel_.unpublish(Side, entry_); }
  void lock() noexcept { channel_.lock(); }
  void unlock() noexcept { channel_.unlock(); }
  [[nodiscard]] base::lock& own_lock() noexcept { return channel_.own_lock(); }
  [[nodiscard]] entry& waiting() noexcept { return entry_; }

 private:
  core& channel_;
  entry& entry_;
};

// With the lock held, and nobody there to meet.
template <class Operation, side Side>
[[gnu::noinline]] status wait_for_partner(sched::worker& on, core& c, void* slot, std::source_location where) {
  task::record& self = *on.current();
  wait::check_may_suspend(1, where);
  wait::note_site(self, Side == side::writer ? "send" : "receive", &c, where);
  rendezvous_wait<Side> w(self, c, slot);
  switch (wait::detail::park_locked(on, self, w, w.waiting(), self.shields == 0 && !on.is_unwinding())) {
    case wait::detail::round::completed: return w.waiting().result;
    case wait::detail::round::cancelled: wait::throw_cancelled();
    case wait::detail::round::settle:
    case wait::detail::round::again: break;
  }
  return complete_slowly<Operation>(c, slot, w.waiting().admitted, where);
}

// The partner is claimed, the lock free.
template <side Side>
[[gnu::always_inline]] inline status exchange_with(entry& partner, sched::worker& on, core& c, void* slot) {
  if (!c.moves_words()) [[unlikely]] {
    if constexpr (Side == side::writer)
      c.settle_send(slot, {status::done, &partner});
    else
      c.settle_receive(slot, {status::done, &partner});
    return status::done;
  }
  if constexpr (Side == side::writer)
    *static_cast<words*>(partner.slot) = *static_cast<words*>(slot);
  else
    *static_cast<words*>(slot) = *static_cast<words*>(partner.slot);
  partner.result = status::done;
  wait::resume(on, *partner.who);
  return status::done;
}

template <class Operation, side Side>
[[gnu::always_inline]] inline status meet(core& c, void* slot, std::source_location where) {
  c.expect_partner(opposite(Side));
  sched::worker* on = wait::undisturbed();
  if (on == nullptr) [[unlikely]]
    return complete_slowly<Operation>(c, slot, false, where);
  c.lock();
  // Closed to sends; waiting senders were admitted and are received (LS-C1).
  if (Side == side::reader || !base::check<"channel.send.closed">(c.is_closed())) [[likely]] {
    if (entry* partner = c.claim_partner(opposite(Side))) {
      c.unlock();
      return exchange_with<Side>(*partner, *on, c, slot);
    }
    if (Side == side::writer || !c.is_closed()) [[likely]]
      return wait_for_partner<Operation, Side>(*on, c, slot, where);
  }
  c.unlock();
  return status::closed;
}

}  // namespace

status meet_receiver(core& c, void* value, std::source_location where) {
  return meet<send_operation, side::writer>(c, value, where);
}
status meet_sender(core& c, void* target, std::source_location where) {
  return meet<receive_operation, side::reader>(c, target, where);
}

}  // namespace weft::inline v1::chan
