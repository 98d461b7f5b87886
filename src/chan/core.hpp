// A channel: a lock, a buffer, who waits, how many ends there are. No type of the elements.
//
// C1. Receivers wait only while nothing is buffered and no sender waits; senders only while the buffer is full (or there is
//     none) and no receiver waits. Both are looked at under the lock, so order is FIFO.       test chan/fifo_*, model/channel
// C2. A value moves once: after the claim decided, outside the lock when it goes from frame to frame.   model/channel
// C3. The claim admits (LS-C1): a send is admitted when it claims a receiver, takes room in the buffer, or is published while
//     open. Close happens under the lock.                                                      model/channel_close
// C5. waiting_[s] is the length of waiters_[s], at every release of the lock: whoever links or unlinks counts. test chan/counts_*
// C4. The core goes when both sides are gone; an operation runs through a live end, so it outlives every operation.
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

// Who waits, first come first served. Changed under the channel's lock; whether there is anybody may be asked without.
class waiter_list {
 public:
  // relaxed: a hint without the lock; under it, the lock orders.
  [[nodiscard]] bool empty() const noexcept { return first() == nullptr; }
  [[nodiscard]] waits::node* first() const noexcept { return head_.load(base::relaxed); }
  void append(waits::node& n) noexcept {
    n.linked = true;
    n.next = nullptr;
    append_new(n);
  }
  // The node was made as linked (wait/node.hpp).
  void append_new(waits::node& n) noexcept {
    waits::node* head = first();
    waits::link_new(head, n);
    head_.store(head, base::relaxed);
  }
  // False: it was on no list.
  bool remove(waits::node& n) noexcept {
    if (!n.linked) return false;
    waits::node* head = first();
    if (head != &n)
      waits::unlink(head, n);
    else
      remove_first(n);
    return true;
  }
  // The one that first() is.
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
  // True: the caller held the last end of both sides and deletes the core.
  [[nodiscard]] bool drop_end(side s) noexcept;
  void close(side by, std::exception_ptr why) noexcept;

  // --- operations without the lock ---------------------------------------------------------------------------------
  [[nodiscard]] bool has_fast_path() const noexcept { return fast_ != nullptr; }
  [[nodiscard]] fast_ring& fast_path() noexcept { return *fast_; }
  [[nodiscard]] bool send_quickly(const void* slot) noexcept {
    return fast_ != nullptr && fast_->try_send(*static_cast<const words*>(slot));
  }
  [[nodiscard]] bool receive_quickly(void* slot) noexcept {
    return fast_ != nullptr && fast_->try_receive(*static_cast<words*>(slot));
  }

  // After that failed: false if an attempt under the lock would have to wait, at one moment since. relaxed: what happened
  // before is seen, and no more is asked.
  [[nodiscard]] bool may_send() const noexcept {
    if (fast_ != nullptr) return fast_->may_send();
    return capacity_ != 0 || !waiters_[index(side::reader)].empty() || is_closed();
  }
  [[nodiscard]] bool may_receive() const noexcept {
    if (fast_ != nullptr) return fast_->may_receive();
    return capacity_ != 0 || !waiters_[index(side::writer)].empty() || is_closed();
  }

  // --- operations with the lock --------------------------------------------------------------------------------------
  // `self` is never its own peer (a select may send and receive on one channel). May throw what a move throws; then nothing
  // has changed.
  [[nodiscard]] attempt send(void* slot, bool admitted, const task::parkable* self);
  [[nodiscard]] attempt receive(void* slot, const task::parkable* self);
  // Before an entry is published: closes the fast path of the other side. True: it had one, so try once more.
  [[nodiscard]] bool expect_wait(side s) noexcept;
  void publish(side s, entry& e) noexcept {
    waiters_[index(s)].append(e);
    ++waiting_[index(s)];
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

  // --- the same of a rendezvous, which has no buffer: rendezvous.cpp ---------------------------------------------------
  [[nodiscard]] bool is_rendezvous() const noexcept { return capacity_ == 0; }
  // The one to exchange with, if there is any.
  [[nodiscard]] entry* claim_partner(side of_partner) noexcept {
    entry* partner = claim_first(of_partner);
    if (partner != nullptr) ++handed_over_;
    return partner;
  }
  // Its entry lies in another task's record, most likely in no cache.
  void expect_partner(side s) const noexcept { __builtin_prefetch(waiters_[index(s)].first(), 1); }
  [[nodiscard]] bool moves_words() const noexcept { return element_.small; }

  // --- after the lock: the other half of an exchange -----------------------------------------------------------------
  void settle_send(void* slot, const attempt& a) {
    if (a.peer != nullptr) exchange(slot, a.peer->slot, *a.peer);
  }
  void settle_receive(void* slot, const attempt& a) {
    if (a.peer == nullptr) return;
    if (a.buffered)
      tell_done(*a.peer);
    else
      exchange(a.peer->slot, slot, *a.peer);
  }

  // --- questions -------------------------------------------------------------------------------------------------------
  [[nodiscard]] bool is_closed() const noexcept { return closed_.load(base::relaxed); }
  [[nodiscard]] bool is_drained() noexcept;
  [[nodiscard]] std::exception_ptr error_of(side by) noexcept;
  [[nodiscard]] counts count() noexcept;
  [[nodiscard]] std::size_t size() noexcept;  // was true at some moment of the call
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  static constexpr int index(side s) noexcept { return static_cast<int>(s); }
  [[nodiscard]] entry* claim_first(side s) noexcept;
  // The same for somebody who may wait there too.
  [[nodiscard]] entry* claim_other(side s, const task::parkable& self) noexcept;
  // Claims all of a list as closed and links them after `woken`.
  static void claim_all(waiter_list& list, waits::node*& woken) noexcept;
  void claim_waiters(side s, waits::node*& woken) noexcept {
    claim_all(waiters_[index(s)], woken);
    waiting_[index(s)] = 0;
  }
  void remove_waiter(side s, waits::node& n) noexcept {
    if (waiters_[index(s)].remove(n)) --waiting_[index(s)];
  }
  // relaxed: a hint without the lock; under it, the lock orders.
  [[nodiscard]] bool is_abandoned() const noexcept { return abandoned_.load(base::relaxed); }
  [[nodiscard]] bool push(void* slot);
  // And lets a waiting sender, the peer, fill the room.
  [[nodiscard]] attempt pop(void* slot, const task::parkable* self);
  [[nodiscard]] entry* refill(const task::parkable* self) noexcept;
  void note_waiters(side s) noexcept;
  void exchange(void* from, void* to, entry& peer);
  static void tell_done(entry& peer) noexcept;
  static void tell_to_retry(entry& peer) noexcept;

  // --- one line: all that a rendezvous touches ---
  base::lock lock_;
  base::atomic<bool> closed_{false};  // written under the lock
  base::atomic<bool> abandoned_{false};  // no reader will ever take anything; written under the lock
  base::atomic<std::uint8_t> sides_{2};
  const element& element_;
  const std::size_t capacity_;
  fast_ring* fast_ = nullptr;  // the buffer, if it can be used without the lock; ours once buffer_ is not
  waiter_list waiters_[2];  // senders, receivers
  std::uint32_t waiting_[2] = {};  // how many of them
  std::uint64_t handed_over_ = 0;
  // --- the rest ---
  std::unique_ptr<buffer> buffer_;  // nullptr: rendezvous, or abandoned
  std::uint64_t buffered_ = 0, taken_ = 0;
  waiter_list watchers_[2];  // writers that watch for the last reader, readers that watch for the close
  std::exception_ptr errors_[2];
  base::atomic<std::uint32_t> ends_[2] = {1, 1};
};

// ---- what operations go through under the lock ---------------------------------------------------------------------------

// The first waiter of that side that is still to be had. Under the lock nobody is half-parked; a waiter claimed by somebody
// else (cancelled, another arm of its select) is stale and finds its node unlinked when it comes for it.
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

// If nobody of that side waits any more, its fast path is open again.
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
  peer.result = status::done;
  waits::resume(*peer.who);
}

// From the sender's frame to the receiver's, of whom `peer` is the one that was claimed. If the move throws, the mover gets the
// exception and the peer looks again.
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
