// A channel without the type of its elements: a lock, a buffer, the waiters of both sides, and the number of ends.
//
// chan.C1. Receivers wait only while nothing is buffered and no sender waits; senders wait only while the buffer is
//     full (or there is none) and no receiver waits. Both are looked at under the lock, so the order is FIFO.
//     test chan/order_*, model/channel
// chan.C2. A value moves once, after the claim has decided. It moves outside the lock if it goes from frame to frame.
//     model/channel
// chan.C3. A send is admitted when it claims a receiver, takes room in the buffer, or is published while the channel is
//     open (LS-C1). Close happens under the lock.
//     model/channel_close_*
// chan.C4. The core is deleted when both sides are gone. Every operation runs through a live end, so the core outlives
//     every operation.
//     test chan/ends_*
// chan.C5. waiting_[s] is the length of waiters_[s] at every release of the lock. Whoever links or unlinks also counts.
//     test chan/counts_*
#pragma once

#include <exception>
#include <memory>
#include <source_location>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/lock.hpp"
#include "chan/buffer.hpp"
#include "chan/fast_ring.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/detail/channel_core.hpp>

namespace weft::inline v1::chan {

// Those who wait, first come first served. The list changes under the channel's lock. Whether it is empty may be asked
// without the lock.
class waiter_list {
 public:
  // relaxed: without the lock this is a hint; with it, the lock orders.
  [[nodiscard]] bool empty() const noexcept { return first() == nullptr; }
  [[nodiscard]] waits::node* first() const noexcept { return head_.load(base::relaxed); }
  void append(waits::node& n) noexcept {
    n.linked = true;
    n.next = nullptr;
    append_new(n);
  }
  // As link_new() of wait/node.hpp: the node was initialised as linked.
  void append_new(waits::node& n) noexcept {
    waits::node* head = first();
    waits::link_new(head, n);
    head_.store(head, base::relaxed);
  }
  // Returns false if the node was on no list.
  bool remove(waits::node& n) noexcept {
    if (!n.linked) return false;
    waits::node* head = first();
    if (head != &n)
      waits::unlink(head, n);
    else
      remove_first(n);
    return true;
  }
  // `n` is the node that first() returns.
  void remove_first(waits::node& n) noexcept {
    n.linked = false;
    if (n.next != nullptr) n.next->previous = n.previous;
    head_.store(n.next, base::relaxed);
  }

 private:
  base::atomic<waits::node*> head_{nullptr};
};

class alignas(base::cache_line) core {
 public:
  core(const element& e, kind k, std::size_t capacity, bool lock_free);
  ~core();
  core(const core&) = delete;
  core& operator=(const core&) = delete;

  void lock() noexcept { lock_.acquire(); }
  void unlock() noexcept { lock_.release(); }
  [[nodiscard]] base::lock& own_lock() noexcept { return lock_; }

  // --- ends -----------------------------------------------------------------------------------------------------
  void add_end(side s) noexcept { ends_[index(s)].fetch_add(1, base::relaxed); }
  // Returns true if this was the last end of both sides. The caller then deletes the core.
  [[nodiscard]] bool drop_end(side s) noexcept;
  void close(side by, std::exception_ptr why) noexcept;

  // --- operations without the lock ---------------------------------------------------------------------------------
  [[nodiscard]] bool has_fast_path() const noexcept { return fast_ != nullptr; }
  [[nodiscard]] fast_ring& fast_path() noexcept { return *fast_; }
  // Only for a channel that has a fast path.
  template <side Side>
  [[nodiscard]] bool try_fast(void* slot) noexcept {
    if constexpr (Side == side::writer)
      return fast_->try_send(*static_cast<const words*>(slot));
    else
      return fast_->try_receive(*static_cast<words*>(slot));
  }
  template <side Side>
  [[nodiscard]] bool try_quickly(void* slot) noexcept {
    return fast_ != nullptr && try_fast<Side>(slot);
  }

  // Asked after that failed. False means that at one moment since then an attempt under the lock would have had to
  // wait. relaxed: the caller is promised only what happened before its call, and that is seen.
  template <side Side>
  [[nodiscard]] bool may_complete() const noexcept {
    if (fast_ != nullptr) return Side == side::writer ? fast_->may_send() : fast_->may_receive();
    return capacity_ != 0 || !waiters_[index(opposite(Side))].empty() || is_closed();
  }

  // --- operations with the lock --------------------------------------------------------------------------------------
  // `self` is not chosen as its own peer: a select may send and receive on one channel. It is nullptr before the caller
  // has published anything. May throw what a move throws; then nothing has changed.
  template <side Side>
  [[nodiscard]] [[gnu::always_inline]] attempt attempt_locked(void* slot, bool admitted, const task::parkable* self) {
    if constexpr (Side == side::writer)
      return send(slot, admitted, self);
    else
      return receive(slot, self);
  }
  // Called before an entry of side s is published. Closes the fast path to the other side, so that nothing gets past
  // the entry. Returns true if there is a fast path: something may have come by it until now, so the caller tries
  // again.
  [[nodiscard]] bool expect_wait(side s) noexcept;
  void publish(side s, entry& e) noexcept {
    waiters_[index(s)].append(e);
    ++waiting_[index(s)];
  }
  // Publishes the entry of a waiter that is PARKING. Before that, one more attempt finds what has come by the fast path
  // until it was closed to the other side. Returns false if that attempt has completed the operation, as `done` says;
  // then nothing is published.
  template <side Side>
  [[nodiscard]] bool publish_unless_ready(entry& e, attempt& done, const task::parkable* self) noexcept {
    if (expect_wait(Side)) {
      // It does not throw, because only channels of small elements have a fast path.
      done = attempt_locked<Side>(e.slot, e.is_admitted(), self);
      if (done.how != status::would_block) {
        unpublish(Side, e);  // opens the fast path again, unless others wait
        return false;
      }
    }
    publish(Side, e);
    return true;
  }
  void publish_new(side s, entry& e) noexcept {
    waiters_[index(s)].append_new(e);
    ++waiting_[index(s)];
  }
  void unpublish(side s, entry& e) noexcept {
    remove_waiter(s, e);
    note_waiters(s);
  }
  [[nodiscard]] bool is_dead(side watcher) const noexcept {
    return watcher == side::writer ? is_abandoned() : is_closed();
  }
  void publish_watcher(side s, entry& e) noexcept { watchers_[index(s)].append(e); }
  void unpublish_watcher(side s, entry& e) noexcept { (void)watchers_[index(s)].remove(e); }

  // --- the same for a channel without a buffer: rendezvous.cpp -------------------------------------------------------
  [[nodiscard]] bool is_rendezvous() const noexcept { return capacity_ == 0; }
  // Claims the one to exchange with, if anybody waits.
  [[nodiscard]] entry* claim_partner(side of_partner) noexcept {
    entry* partner = claim_first(of_partner);
    if (partner != nullptr) ++handed_over_;
    return partner;
  }
  // The entry of the first waiter lies in another task's record, and most likely is not in this processor's cache.
  void expect_partner(side s) const noexcept { __builtin_prefetch(waiters_[index(s)].first(), 1); }
  [[nodiscard]] bool moves_words() const noexcept { return element_.small; }

  // --- after the lock: the other half of an exchange -----------------------------------------------------------------
  template <side Side>
  void settle(void* slot, const attempt& a) {
    if (a.peer == nullptr) return;
    if (Side == side::reader && a.buffered)
      tell_done(*a.peer);
    else if (Side == side::reader)
      exchange(a.peer->slot, slot, *a.peer);
    else
      exchange(slot, a.peer->slot, *a.peer);
  }

  // --- questions ----------------------------------------------------------------------------------------------------
  [[nodiscard]] bool is_closed() const noexcept { return closed_.load(base::relaxed); }
  [[nodiscard]] bool is_drained() noexcept;
  [[nodiscard]] std::exception_ptr error_of(side by) noexcept;
  [[nodiscard]] counts count() noexcept;
  [[nodiscard]] std::size_t size() noexcept;  // was true at some moment of the call
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  friend struct weft::detail::observer;
  static constexpr int index(side s) noexcept { return static_cast<int>(s); }
  [[nodiscard]] attempt send(void* slot, bool admitted, const task::parkable* self);
  [[nodiscard]] attempt receive(void* slot, const task::parkable* self);
  [[nodiscard]] entry* claim_first(side s) noexcept;
  // The same for a caller that may be on that list itself.
  [[nodiscard]] entry* claim_other(side s, const task::parkable& self) noexcept;
  // Claims all waiters of a list, tells them `closed`, and adds them to the list `woken`.
  static void claim_all(waiter_list& list, waits::node*& woken) noexcept;
  void claim_waiters(side s, waits::node*& woken) noexcept {
    claim_all(waiters_[index(s)], woken);
    waiting_[index(s)] = 0;
  }
  void remove_waiter(side s, waits::node& n) noexcept {
    if (waiters_[index(s)].remove(n)) --waiting_[index(s)];
  }
  // relaxed: without the lock this is a hint; with it, the lock orders.
  [[nodiscard]] bool is_abandoned() const noexcept { return abandoned_.load(base::relaxed); }
  [[nodiscard]] bool push(void* slot);
  // Also moves the value of the first waiting sender into the room. That sender is the peer of the attempt.
  [[nodiscard]] attempt pop(void* slot, const task::parkable* self);
  [[nodiscard]] entry* refill(const task::parkable* self) noexcept;
  void note_waiters(side s) noexcept;
  void exchange(void* from, void* to, entry& peer);
  static void tell_done(entry& peer) noexcept;
  static void tell_to_retry(entry& peer) noexcept;

  // --- the first cache line: all that a rendezvous touches ---
  base::lock lock_;
  base::atomic<bool> closed_{false};  // written under the lock
  base::atomic<bool> abandoned_{false};  // no reader will ever take anything; written under the lock
  base::atomic<std::uint8_t> sides_{2};
  const element& element_;
  const std::size_t capacity_;
  fast_ring* fast_ = nullptr;  // the buffer, if it can be used without the lock; owned by this once buffer_ is empty
  waiter_list waiters_[2];  // senders, receivers
  std::uint32_t waiting_[2] = {};  // how many there are on each list (chan.C5)
  std::uint64_t handed_over_ = 0;
  // --- the rest ---
  std::unique_ptr<buffer> buffer_;  // nullptr for a rendezvous, and after the readers have closed
  std::uint64_t buffered_ = 0, taken_ = 0;
  waiter_list watchers_[2];  // writers that watch for the last reader, readers that watch for the close
  std::exception_ptr errors_[2];
  base::atomic<std::uint32_t> ends_[2] = {1, 1};
};

// ---- what operations go through under the lock
// ---------------------------------------------------------------------------

// Claims the first waiter of that side that nobody else has claimed. Nobody on the list is half-parked while we hold
// the lock (wait.A1). A waiter that was claimed by another waker (a canceller, another arm of its select) is taken off
// the list; it finds its node unlinked when it takes the lock.
inline entry* core::claim_first(side s) noexcept {
  waiter_list& list = waiters_[index(s)];
  while (waits::node* candidate = list.first()) {
    list.remove_first(*candidate);
    --waiting_[index(s)];
    if (!base::check<"channel.claim">(!waits::claim(*candidate, task::wake_reason::data)))
      return static_cast<entry*>(candidate);
  }
  return nullptr;
}

// Opens the fast path again if nobody of that side waits any more.
inline void core::note_waiters(side s) noexcept {
  if (fast_ == nullptr || !waiters_[index(s)].empty() || is_abandoned()) return;
  if (s == side::writer)
    fast_->clear_senders_wait();
  else
    fast_->clear_receivers_wait();
}

inline bool core::expect_wait(side s) noexcept {
  if (fast_ == nullptr) return false;
  if (s == side::writer)
    fast_->set_senders_wait();
  else
    fast_->set_receivers_wait();
  return true;
}

[[gnu::always_inline]] inline attempt core::send(void* slot, bool admitted, const task::parkable* self) {
  if (is_abandoned() || base::check<"channel.send.closed">(is_closed() && !admitted)) return {status::closed};
  if (!waiters_[index(side::reader)].empty()) {
    entry* receiver = self == nullptr ? claim_first(side::reader) : claim_other(side::reader, *self);
    note_waiters(side::reader);
    if (receiver != nullptr) {
      ++handed_over_;
      return {status::done, receiver};
    }
  }
  if (buffer_ == nullptr || !push(slot)) return {};
  return {status::done};
}

[[gnu::always_inline]] inline attempt core::receive(void* slot, const task::parkable* self) {
  if (is_abandoned()) return {status::closed};
  if (buffer_ != nullptr) {
    const attempt a = pop(slot, self);
    if (a.how == status::done) return a;
  }
  entry* sender = nullptr;
  if (!waiters_[index(side::writer)].empty()) {
    sender = self == nullptr ? claim_first(side::writer) : claim_other(side::writer, *self);
    note_waiters(side::writer);
  }
  if (sender == nullptr) return {is_closed() ? status::closed : status::would_block};
  ++handed_over_;
  return {status::done, sender};
}

inline void core::tell_done(entry& peer) noexcept {
  peer.set_result(status::done);
  waits::resume(*peer.who);
}

// Moves the value from the sender's frame to the receiver's. `peer` is the one of the two that was claimed, and the
// caller is the other. If the move throws, the caller gets the exception and the peer looks again.
inline void core::exchange(void* from, void* to, entry& peer) {
  if (element_.small) {
    *static_cast<words*>(to) = *static_cast<words*>(from);
  } else {
    try {
      element_.deliver(to, from);
    } catch (...) {
      lock();
      --handed_over_;
      unlock();
      tell_to_retry(peer);
      throw;
    }
  }
  tell_done(peer);
}

}  // namespace weft::inline v1::chan
