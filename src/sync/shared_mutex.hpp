// A mutex for many readers or one writer: one word, and behind it a list of writers and a list of readers, with one
// lock for both.
//
//   63             2   1   0
//  [ readers        ][ X ][ W ]     X  a writer holds it     W  somebody is on a list, or is about to be
//
// sync.R1. X excludes readers. Those that come after a writer see what it did, and the next writer sees what readers
//     did.                                                                       model/rwlock, test sync/shared_mutex_*
// sync.R2. While W is set, the word changes only under the lock. While it is not, the word changes by compare-exchanges
//     alone, which fail when W comes. So a writer that waits keeps new readers out.
//                                                                    test sync/a_waiting_writer_keeps_new_readers_out_*
// sync.R3. Nobody waits for what is free: whoever unlocks or leaves a list lets in the first writer or, if no writer
//     waits, all readers. A lock for a waiter is put into the word after the waiter is claimed, so a waiter that has
//     left was given none.                                                                                 model/rwlock
// sync.R4. An unlock ends with one compare-exchange, or with the lock's release while somebody is yet to be resumed.
//                                                                                               model/rwlock_*_destroys
#pragma once

#include <chrono>
#include <source_location>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "sync/caller.hpp"
#include "sync/held_locks.hpp"
#include "sync/waiters.hpp"

namespace weft::inline v1::locks {

enum class access : std::uint8_t { read, write };

class shared_mutex_core {
 public:
  [[nodiscard]] bool try_take(access a, owner me) noexcept {
    std::uint64_t w = word_.load(base::relaxed);
    while ((w & waiting) == 0 && admits(w, a))
      // acquire pairs with the release in release() and the stores under the lock.
      if (word_.compare_exchange_weak(w, w + weight(a), base::order<"rwlock.take">(base::acquire), base::relaxed)) {
        if (a == access::write) writer_.store(me, base::relaxed);
        return true;
      }
    return false;
  }
  void release(access a) noexcept {
    if (a == access::write) writer_.store(0, base::relaxed);
    std::uint64_t w = word_.load(base::relaxed);
    while ((w & waiting) == 0) {
      if (!holds(w, a)) [[unlikely]]
        fail_not_held(a);
      // release pairs with the acquire in try_take(). This is the last access (sync.R4).
      if (word_.compare_exchange_weak(w, w - weight(a), base::order<"rwlock.release">(base::release), base::relaxed))
        return;
    }
    release_to_waiters(a);
  }
  [[nodiscard]] bool is_written_by(owner who) const noexcept { return writer_.load(base::relaxed) == who; }
  [[nodiscard]] bool is_written() const noexcept { return (word_.load(base::relaxed) & writing) != 0; }
  [[nodiscard]] bool is_idle() const noexcept { return word_.load(base::relaxed) == 0; }

 private:
  friend class access_operation;
  friend struct weft::detail::observer;
  static constexpr std::uint64_t waiting = 1, writing = 2, reader = 4;
  static constexpr std::uint64_t weight(access a) noexcept { return a == access::write ? writing : reader; }
  static constexpr bool admits(std::uint64_t w, access a) noexcept {
    return a == access::write ? w / writing == 0 : (w & writing) == 0;
  }
  static constexpr bool holds(std::uint64_t w, access a) noexcept {
    return a == access::write ? (w & writing) != 0 : w / reader != 0;
  }

  [[nodiscard]] bool publish(access a, waits::node& n) noexcept;
  void unpublish(access a, waits::node& n) noexcept;
  [[nodiscard]] std::uint64_t admit(std::uint64_t w, claimed_waiters& in) noexcept;
  void release_to_waiters(access a) noexcept;
  [[nodiscard]] waiters& list_of(access a) noexcept { return a == access::write ? writers_ : readers_; }
  [[nodiscard]] std::uint64_t others() const noexcept { return writers_.empty() && readers_.empty() ? 0 : waiting; }
  [[noreturn]] static void fail_not_held(access a) noexcept;

  base::atomic<std::uint64_t> word_{0};
  base::lock lock_;
  waiters writers_;  // under lock_
  waiters readers_;  // under lock_
  base::atomic<owner> writer_{0};  // written by the writer only; detects one that waits for itself
};

inline constexpr waits::wait_kind shared_mutex_write_kind{"shared_mutex (write)",
                                                          waits::kind_number::shared_mutex_write};
inline constexpr waits::wait_kind shared_mutex_read_kind{"shared_mutex (read)", waits::kind_number::shared_mutex_read};

class access_operation final : public waits::waitable {
 public:
  access_operation(shared_mutex_core& m, access a, owner me) noexcept : mutex_(m), access_(a), me_(me) {}

  bool try_complete() noexcept override { return mutex_.try_take(access_, me_); }
  bool publish(waits::node& n) noexcept override { return mutex_.publish(access_, n); }
  void unpublish(waits::node& n) noexcept override { mutex_.unpublish(access_, n); }
  [[nodiscard]] base::lock* own_lock() noexcept override { return &mutex_.lock_; }
  [[nodiscard]] waits::subject what() const noexcept override {
    return {access_ == access::write ? &shared_mutex_write_kind : &shared_mutex_read_kind, &mutex_};
  }
  [[nodiscard]] waits::node& node() noexcept { return node_; }
  // To be called after it was completed.
  void note_writer() noexcept {
    if (access_ == access::write) mutex_.writer_.store(me_, base::relaxed);
  }

 private:
  shared_mutex_core& mutex_;
  access access_;
  owner me_;
  waits::node node_;
};

// Cancellation points.
void lock(shared_mutex_core& m, access a, std::source_location where);
[[nodiscard]] bool lock_until(shared_mutex_core& m, access a, std::chrono::steady_clock::time_point when,
                              std::source_location where);

}  // namespace weft::inline v1::locks
