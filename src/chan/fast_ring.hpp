// A ring of small elements that senders and receivers use without the channel's lock while nobody has to wait.
//
//  tail word:  position * 16 | senders wait * 4 | receivers wait * 2 | closed
//  head word:  position * 16 | senders wait
//  slot n:     turn = 16n               free for the element of position n
//              turn = 16n + 8           holds the element of position n
//              turn = 16(n + slots)     free for the element of the next lap
//
// Words and turns count in steps of 16, the size of a slot. So a word that is masked is the offset of its slot, and a
// word without flags is the turn that its side waits for. A word with flags equals no turn.
//
// chan.Q1. A position is given to one sender and to one receiver, each by a CAS of the whole word.
//     model/channel
// chan.Q2. Once a flag is set in the word of a side, no slot shows the turn that this word asks for, the CAS of the
//     side fails, and it takes the lock. So a receiver that has set its flag in the tail and then finds the ring empty
//     may park: nothing can be sent past it. In the same way a sender that has set its flag in the head and finds the
//     ring full may park. It also stops the other senders, so that none takes the room that a receiver makes for it.
//     model/channel
// chan.Q3. A position that is taken and not yet written counts as not empty. Whoever needs its element waits for the
//     few instructions until it is written. So close cannot hide an admitted send.
//     model/channel_close_*
// chan.Q4. The turn of a slot orders its element. A sender writes the element before the release of the turn and a
//     receiver reads it after the acquire; the receiver's release and the next sender's acquire order the way back.
//     model/channel
//
// Rejected: two counters of waiters beside the positions (a store-load fence on every operation instead of none).
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
  // Both return false if the caller has to take the lock and look again there.
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

  // Asked after such a failure. False means that at one moment since then the ring was full (or open and empty), so an
  // attempt under the lock would have had to wait. A position that is taken counts as written, or as read (chan.Q3).
  // acquire: the other word is read after this one, so the moment is that of the second load; pairs with the release
  // in advance().
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

  // --- with the lock, while others may still use the ring without it ------------------------------------------------
  bool push(void* sent) override {
    base::backoff b;
    std::uint64_t tail = tail_.load(base::relaxed);
    for (;;) {
      const std::uint64_t turn = turn_of(tail);
      // acquire pairs with the release in advance(), as in has_room().
      const std::uint64_t head = turn_of(head_.load(base::acquire));
      // If the head is beyond this turn, somebody has sent and somebody has received since the tail was read, and the
      // two words say nothing about the room. The look at the slot decides then.
      if (turn >= head && turn - head >= capacity_ * step) return false;
      if (slot& s = slot_of(turn); has_room(s, turn)) {
        if (!advance(tail_, tail)) continue;
        write(s, turn, *static_cast<words*>(sent));
        return true;
      }
      b.pause();  // chan.Q3: a receiver is just reading the slot
      tail = tail_.load(base::relaxed);
    }
  }
  bool pop(void* received) override {
    base::backoff b;
    std::uint64_t head = head_.load(base::relaxed);
    for (;;) {
      const std::uint64_t turn = turn_of(head);
      // relaxed: the acquire of the slot's turn orders the element. The tail's position cannot be missed, because a
      // receiver that means to park has set its flag in this very word.
      if (turn == turn_of(tail_.load(base::relaxed))) return false;
      if (slot& s = slot_of(turn); holds(s, turn)) {
        if (!advance(head_, head)) continue;
        read(s, turn, *static_cast<words*>(received));
        return true;
      }
      b.pause();  // chan.Q3: a sender is just writing the slot
      head = head_.load(base::relaxed);
    }
  }
  // Does not need the lock. Much may be sent and received between two loads. So it tries again until nothing was
  // received between its two loads of the head; the result is the size at the moment at which the tail was read.
  // acquire: the loads stay in this order.
  [[nodiscard]] std::size_t size() const noexcept override {
    std::uint64_t head = turn_of(head_.load(base::acquire));
    for (;;) {
      const std::uint64_t tail = turn_of(tail_.load(base::acquire));
      const std::uint64_t again = turn_of(head_.load(base::acquire));
      if (again == head) return (tail - head) / step;
      head = again;
    }
  }
  // These five are called under the lock. relaxed: a flag is in the same word as the position that it is compared with
  // (chan.Q2), and nothing else is published.
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

  // release pairs with the acquire of head_ in has_room(): the sender that a receiver has made room for sees what that
  // receiver did before.
  static bool advance(base::atomic<std::uint64_t>& word, std::uint64_t& seen) noexcept {
    return word.compare_exchange_weak(seen, seen + step, base::release, base::relaxed);
  }
  // Somebody on another core was faster. If we tried again at once, both would go on to compete and the cache line
  // would travel for every element. So we leave it to the other for as long as some dozens of elements take.
  static std::uint64_t step_back(const base::atomic<std::uint64_t>& word) noexcept {
    base::linger(40);
    return word.load(base::relaxed);
  }

  // has_room() and holds() are false for a word with flags (chan.Q2).
  [[nodiscard]] bool has_room(const slot& s, std::uint64_t turn) const noexcept {
    // If there are more slots than the capacity, a free slot may be beyond it. Otherwise every free slot is room.
    if (has_spare_slots_ && turn - turn_of(head_.load(base::acquire)) >= capacity_ * step) return false;
    // Pairs with the release in read(): the slot's last element has been copied out (chan.Q4).
    return s.turn.load(base::order<"fast_ring.room">(base::acquire)) == turn;
  }
  [[nodiscard]] static bool holds(const slot& s, std::uint64_t turn) noexcept {
    // Pairs with the release in write(): the element is there (chan.Q4).
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
    // Frees the slot; pairs with the acquire in has_room().
    s.turn.store(turn + lap_, base::order<"fast_ring.read">(base::release));
  }

  const std::size_t capacity_;
  const std::uint64_t lap_;  // a power of two
  const bool has_spare_slots_;  // the capacity is no power of two, so there are more slots than it allows elements
  const bool has_second_;
  const std::unique_ptr<slot[]> first_;
  const std::unique_ptr<base::plain<std::uint64_t>[]> second_;
  alignas(base::cache_line) base::atomic<std::uint64_t> tail_{0};
  alignas(base::cache_line) base::atomic<std::uint64_t> head_{0};
};

}  // namespace weft::inline v1::chan
