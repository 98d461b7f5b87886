// A channel: a lock, a buffer, who waits, how many ends there are. No type of the elements.
//
// C1. Receivers wait only while nothing is buffered and no sender waits; senders only while the buffer is full (or there is
//     none) and no receiver waits. Both are looked at under the lock, so order is FIFO.       test chan/fifo_*, model/channel
// C2. A value moves once: after the claim decided, outside the lock when it goes from frame to frame.   model/channel
// C3. The claim admits (LS-C1): a send is admitted when it claims a receiver, takes room in the buffer, or is published while
//     open. Close happens under the lock.                                                      model/channel_close
// C4. The core goes when both sides are gone; an operation runs through a live end, so it outlives every operation.
#pragma once

#include <exception>
#include <memory>
#include <source_location>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "chan/buffer.hpp"
#include "chan/fast_ring.hpp"
#include "wait/node.hpp"
#include <weft/detail/channel_core.hpp>

namespace weft::inline v1::chan {

class core {
 public:
  core(const element& e, kind k, std::size_t capacity, bool lock_free);
  core(const core&) = delete;
  core& operator=(const core&) = delete;

  void lock() noexcept { lock_.acquire(); }
  void unlock() noexcept { lock_.release(); }

  // --- ends -----------------------------------------------------------------------------------------------------
  void add_end(side s) noexcept { ends_[index(s)].fetch_add(1, base::relaxed); }
  // True: the caller held the last end of both sides and deletes the core.
  [[nodiscard]] bool drop_end(side s) noexcept;
  void close(side by, std::exception_ptr why) noexcept;

  // --- operations without the lock ---------------------------------------------------------------------------------
  [[nodiscard]] bool send_quickly(const entry& e) noexcept {
    return fast_ != nullptr && fast_->try_send(*static_cast<const words*>(e.slot));
  }
  [[nodiscard]] bool receive_quickly(entry& e) noexcept {
    return fast_ != nullptr && fast_->try_receive(*static_cast<words*>(e.slot));
  }

  // --- operations with the lock --------------------------------------------------------------------------------------
  // `self` is never its own peer (a select may send and receive on one channel). May throw what a move throws; then nothing
  // has changed.
  [[nodiscard]] attempt send(entry& e, const task::parkable* self);
  [[nodiscard]] attempt receive(entry& e, const task::parkable* self);
  // Before an entry is published: closes the fast path of the other side. True: it had one, so try once more.
  [[nodiscard]] bool expect_wait(side s) noexcept;
  void publish(side s, entry& e) noexcept { wait::link_last(waiters_[index(s)], e); }
  void unpublish(side s, entry& e) noexcept {
    wait::unlink(waiters_[index(s)], e);
    note_waiters(s);
  }
  [[nodiscard]] bool is_dead(side watcher) const noexcept { return watcher == side::writer ? abandoned_ : is_closed(); }
  void publish_watcher(side s, entry& e) noexcept { wait::link_last(watchers_[index(s)], e); }
  void unpublish_watcher(side s, entry& e) noexcept { wait::unlink(watchers_[index(s)], e); }

  // --- after the lock: the other half of an exchange -----------------------------------------------------------------
  void settle_send(entry& mine, const attempt& a);
  void settle_receive(entry& mine, const attempt& a);

  // --- questions -------------------------------------------------------------------------------------------------------
  [[nodiscard]] bool is_closed() const noexcept { return closed_.load(base::relaxed); }
  [[nodiscard]] std::exception_ptr error_of(side by) noexcept;
  [[nodiscard]] counts count() noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  static constexpr int index(side s) noexcept { return static_cast<int>(s); }
  [[nodiscard]] entry* claim_first(side s, const task::parkable* self) noexcept;
  // Claims all of a list as closed and links them after `woken`.
  static void claim_all(wait::node*& list, wait::node*& woken) noexcept;
  [[nodiscard]] entry* refill(const task::parkable* self) noexcept;
  void note_waiters(side s) noexcept;
  void exchange(entry& from, entry& to, entry& peer);

  base::lock lock_;
  const element& element_;
  const kind kind_;
  const std::size_t capacity_;
  std::unique_ptr<buffer> buffer_;  // nullptr: rendezvous, or abandoned
  fast_ring* fast_ = nullptr;  // the buffer, if it can be used without the lock
  std::unique_ptr<buffer> retired_;  // keeps the fast ring alive for those still inside
  wait::node* waiters_[2] = {};  // senders, receivers
  wait::node* watchers_[2] = {};  // writers that watch for the last reader, readers that watch for the close
  base::atomic<bool> closed_{false};  // written under the lock
  bool abandoned_ = false;  // no reader will ever take anything
  std::exception_ptr errors_[2];
  std::uint64_t buffered_ = 0, taken_ = 0, handed_over_ = 0;
  base::atomic<std::uint32_t> ends_[2] = {1, 1};
  base::atomic<std::uint32_t> sides_{2};
};

}  // namespace weft::inline v1::chan
