// A ring of small elements that senders and receivers use without the channel's lock while nobody has to wait.
//
//  tail word:  position * 16 | senders wait * 4 | receivers wait * 2 | closed      head word:  position * 16 | senders wait
//  slot n:     turn = 16n free for position n · 16n + 8 holds it · 16(n + slots) free for the next lap
//
// In steps of 16, the size of a slot: masked, a word is the offset of its slot, and without flags it is the turn that it waits for.
// With flags it is the turn of nothing.
//
// Q1. A position is given to one sender and to one receiver: each by a CAS of the whole word.          model/channel_ring
// Q2. Once a flag is set no slot's turn has come for that side any more, its CAS fails, and it takes the lock. So a receiver that has set its flag and then finds
//     the ring empty may park: nothing can be sent past it. Mirror: a sender that finds it full; it stops the other senders
//     too, so that none takes the room that a receiver makes for it.                                   model/channel_ring
// Q3. A position that is taken and not yet written counts as not empty: who needs it waits for those few instructions. So
//     close cannot hide an admitted send.                                                              model/channel_close
// Q4. turn orders the element: written before its release, read after the acquire, and back.           model/channel_ring
//
// Rejected: two counters beside the positions for waiters (a store-load fence on every operation instead of none).
#pragma once

#include <bit>
#include <memory>

#include "base/atomic.hpp"
#include "base/backoff.hpp"
#include "base/cache_line.hpp"
#include "base/mutation.hpp"
#include "chan/buffer.hpp"

namespace weft::inline v1::chan {

class fast_ring final : public buffer {
 public:
  fast_ring(std::size_t capacity, bool two_words)
      : capacity_(capacity),
        lap_(std::bit_ceil(capacity) * step),
        has_spare_slots_(lap_ != capacity * step),
        has_second_(two_words),
        first_(std::make_unique<slot[]>(lap_ / step)),
        second_(two_words ? std::make_unique<base::plain<std::uint64_t>[]>(lap_ / step) : nullptr) {
    for (std::uint64_t turn = 0; turn < lap_; turn += step) slot_of(turn).turn.store(turn, base::relaxed);
  }

  // --- without the lock ---------------------------------------------------------------------------------------------
  // False: take the lock and look there.
  [[nodiscard]] bool try_send(const words& w) noexcept {
    std::uint64_t tail = tail_.load(base::relaxed);
    for (;;) {
      slot& s = slot_of(tail);
      if (!has_room(s, tail)) return false;
      const std::uint64_t turn = tail;
      if (!advance(tail_, tail)) [[unlikely]] {
        tail = step_back(tail_);
        continue;
      }
      write(s, turn, w);
      return true;
    }
  }
  [[nodiscard]] bool try_receive(words& w) noexcept {
    std::uint64_t head = head_.load(base::relaxed);
    for (;;) {
      slot& s = slot_of(head);
      if (!holds(s, head)) return false;
      const std::uint64_t turn = head;
      if (!advance(head_, head)) [[unlikely]] {
        head = step_back(head_);
        continue;
      }
      read(s, turn, w);
      return true;
    }
  }

  // After such a failure. False: at one moment since it was full (or open and empty), so that the lock would not help. A
  // position that is taken counts as written, or as read (Q3). acquire: the other word is read after it, so the moment is that of the second
  // load; pairs with the release in advance().
  [[nodiscard]] bool may_send() const noexcept {
    const std::uint64_t tail = tail_.load(base::acquire);
    if ((tail & tail_flags) != 0) return true;
    const std::uint64_t head = turn_of(head_.load(base::relaxed));
    return tail < head || tail - head < capacity_ * step;
  }
  [[nodiscard]] bool may_receive() const noexcept {
    const std::uint64_t head = head_.load(base::acquire);
    if ((head & senders_wait) != 0) return true;
    const std::uint64_t tail = tail_.load(base::relaxed);
    return (tail & closed) != 0 || head != turn_of(tail);
  }

  // --- with the lock: the other side's fast path may still be at work ---------------------------------------------
  bool push(void* sent) override {
    base::backoff b;
    std::uint64_t tail = tail_.load(base::relaxed);
    for (;;) {
      const std::uint64_t turn = turn_of(tail);
      // acquire pairs with the release in advance(): see has_room().
      const std::uint64_t head = turn_of(head_.load(base::acquire));
      // A head beyond it: it was sent to and received from since the tail was read, so nothing is known.
      if (turn >= head && turn - head >= capacity_ * step) return false;
      if (slot& s = slot_of(turn); has_room(s, turn)) {
        if (!advance(tail_, tail)) continue;
        write(s, turn, *static_cast<words*>(sent));
        return true;
      }
      b.pause();  // Q3: somebody is reading it right now
      tail = tail_.load(base::relaxed);
    }
  }
  bool pop(void* received) override {
    base::backoff b;
    std::uint64_t head = head_.load(base::relaxed);
    for (;;) {
      const std::uint64_t turn = turn_of(head);
      // relaxed: which element it is, `turn` tells. The position itself cannot be missed: a receiver that means to park has
      // set its flag in this very word.
      if (turn == turn_of(tail_.load(base::relaxed))) return false;
      if (slot& s = slot_of(turn); holds(s, turn)) {
        if (!advance(head_, head)) continue;
        read(s, turn, *static_cast<words*>(received));
        return true;
      }
      b.pause();  // Q3: somebody is writing it right now
      head = head_.load(base::relaxed);
    }
  }
  // The lock is not needed for it. Between two loads much may be sent and received: it is tried until nothing was received
  // meanwhile, so that it is the size of the moment at which the tail was read. acquire: the loads stay in this order.
  [[nodiscard]] std::size_t size() const noexcept override {
    std::uint64_t head = turn_of(head_.load(base::acquire));
    for (;;) {
      const std::uint64_t tail = turn_of(tail_.load(base::acquire));
      const std::uint64_t again = turn_of(head_.load(base::acquire));
      if (again == head) return (tail - head) / step;
      head = again;
    }
  }
  // Each under the lock. relaxed: the flag and the position it is compared with are one word (Q2); nothing else is published.
  void set_receivers_wait() noexcept {
    base::step<"fast_ring.receivers_wait">([&] { tail_.fetch_or(receivers_wait, base::relaxed); });
  }
  void clear_receivers_wait() noexcept {
    if ((tail_.load(base::relaxed) & receivers_wait) != 0) tail_.fetch_and(~receivers_wait, base::relaxed);
  }
  void set_senders_wait() noexcept {
    base::step<"fast_ring.senders_wait">([&] { tail_.fetch_or(earlier_senders, base::relaxed); });
    base::step<"fast_ring.stop_receivers">([&] { head_.fetch_or(senders_wait, base::relaxed); });
  }
  void clear_senders_wait() noexcept {
    if ((head_.load(base::relaxed) & senders_wait) == 0) return;
    head_.fetch_and(~senders_wait, base::relaxed);
    tail_.fetch_and(~earlier_senders, base::relaxed);
  }
  void close() noexcept {
    base::step<"fast_ring.close">([&] { tail_.fetch_or(closed, base::relaxed); });
  }

  [[nodiscard]] std::uint64_t sent() const noexcept { return tail_.load(base::relaxed) / step; }
  [[nodiscard]] std::uint64_t received() const noexcept { return head_.load(base::relaxed) / step; }

 private:
  static constexpr std::uint64_t closed = 1;
  static constexpr std::uint64_t receivers_wait = 2;
  static constexpr std::uint64_t earlier_senders = 4;
  static constexpr std::uint64_t tail_flags = closed | receivers_wait | earlier_senders;
  static constexpr std::uint64_t senders_wait = 1;
  static constexpr std::uint64_t step = 16;
  static constexpr std::uint64_t holds_it = 8;

  struct slot {
    base::atomic<std::uint64_t> turn{0};
    base::plain<std::uint64_t> word{0};
  };

  [[nodiscard]] static std::uint64_t turn_of(std::uint64_t word) noexcept { return word & ~(step - 1); }
  [[nodiscard]] std::size_t index_of(std::uint64_t turn) const noexcept { return (turn & (lap_ - 1)) / step; }
  [[nodiscard]] slot& slot_of(std::uint64_t turn) const noexcept { return first_[index_of(turn)]; }

  // release pairs with the acquire of head_ in has_room(): what a receiver did before is seen by the sender it made room for.
  static bool advance(base::atomic<std::uint64_t>& word, std::uint64_t& seen) noexcept {
    return word.compare_exchange_weak(seen, seen + step, base::release, base::relaxed);
  }
  // Somebody on another core was faster. At once it would be the same again, and the line would travel for every element: let it
  // have its way for a while, some dozens of elements long.
  static std::uint64_t step_back(const base::atomic<std::uint64_t>& word) noexcept {
    base::linger(40);
    return word.load(base::relaxed);
  }

  // Neither is true of a word with flags (Q2).
  [[nodiscard]] bool has_room(const slot& s, std::uint64_t turn) const noexcept {
    // Without spare slots a free one is room.
    if (has_spare_slots_ && turn - turn_of(head_.load(base::acquire)) >= capacity_ * step) return false;
    // Pairs with the release in read(): the last element has been copied out (Q4).
    return s.turn.load(base::order<"fast_ring.room">(base::acquire)) == turn;
  }
  [[nodiscard]] static bool holds(const slot& s, std::uint64_t turn) noexcept {
    // Pairs with the release in write() (Q4).
    return s.turn.load(base::order<"fast_ring.holds">(base::acquire)) == turn + holds_it;
  }
  void write(slot& s, std::uint64_t turn, const words& w) noexcept {
    s.word = w.word[0];
    if (has_second_) second_[index_of(turn)] = w.word[1];
    // Publishes the element; pairs with the acquire in holds().
    s.turn.store(turn + holds_it, base::order<"fast_ring.write">(base::release));
  }
  void read(slot& s, std::uint64_t turn, words& w) noexcept {
    w.word[0] = s.word;
    if (has_second_) w.word[1] = second_[index_of(turn)];
    // The slot is free; pairs with the acquire in has_room().
    s.turn.store(turn + lap_, base::order<"fast_ring.read">(base::release));
  }

  const std::size_t capacity_;
  const std::uint64_t lap_;  // a power of two
  const bool has_spare_slots_;  // the capacity is none
  const bool has_second_;
  const std::unique_ptr<slot[]> first_;
  const std::unique_ptr<base::plain<std::uint64_t>[]> second_;
  alignas(base::cache_line) base::atomic<std::uint64_t> tail_{0};
  alignas(base::cache_line) base::atomic<std::uint64_t> head_{0};
};

}  // namespace weft::inline v1::chan
