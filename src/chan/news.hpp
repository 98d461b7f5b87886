// A version, an end, and who waits for either. Oneshot, broadcast and watch are typed states behind it.
//
// W1. A reader waits only while the version is not above what it has seen and there is no end; both change under the lock and
//     wake everyone who waits. So nobody waits for what is there already.       test chan/*_is_never_missed, model/news
// W2. The wait completes no operation: the woken reader looks again, under the lock. It has its place in the stream to itself,
//     so what it was woken for cannot be taken from it, and a cancelled reader has taken nothing.
//                                                                               test chan/*_cancelled_*, model/news
// W3. The typed state is touched under the lock only. User code there: one copy, move or swap; what is replaced is destroyed in
//     the writer's frame.                                                       test chan/*_destroyed_without_the_lock
// W4. It goes with the last end of the two sides; an operation runs through a live end.          model/news
//
// Rejected: a slot per waiter that the writer copies to (a writer would pay for its readers' copies, and meet their exceptions).
#pragma once

#include <exception>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "wait/node.hpp"
#include <weft/detail/news_core.hpp>

namespace weft::inline v1::chan {

class news {
 public:
  explicit news(const news_state& s) noexcept : state_(s) {}
  news(const news&) = delete;
  news& operator=(const news&) = delete;

  void lock() noexcept { lock_.acquire(); }
  void unlock() noexcept { lock_.release(); }
  [[nodiscard]] base::lock& own_lock() noexcept { return lock_; }

  // --- with the lock -----------------------------------------------------------------------------------------------
  // What the waiter of that side waits for has come.
  [[nodiscard]] bool is_there(side s, std::uint64_t seen) const noexcept {
    return s == side::reader ? has_news(seen) : ends_[index(side::reader)] == 0;
  }
  void publish(side s, waits::node& n) noexcept { waits::link_last(waiters_[index(s)], n); }
  void unpublish(side s, waits::node& n) noexcept { waits::unlink(waiters_[index(s)], n); }
  [[nodiscard]] bool has_readers() const noexcept { return ends_[index(side::reader)] != 0; }

  // --- with the lock, which is free afterwards -------------------------------------------------------------------------
  void announce_and_unlock() noexcept;

  // --- without -----------------------------------------------------------------------------------------------------
  // relaxed: whoever is told that there is something looks for it under the lock.
  [[nodiscard]] bool has_news(std::uint64_t seen) const noexcept { return version() > seen || is_closed(); }
  [[nodiscard]] std::uint64_t version() const noexcept { return version_.load(base::relaxed); }
  [[nodiscard]] bool is_closed() const noexcept { return closed_.load(base::relaxed); }
  [[nodiscard]] std::exception_ptr error() noexcept;
  void close(std::exception_ptr why) noexcept;
  void add_end(side s) noexcept;
  // True: it was the last of both sides, and the caller destroys this.
  [[nodiscard]] bool drop_end(side s) noexcept;

  [[nodiscard]] void* state() noexcept;
  [[nodiscard]] const news_state& layout() const noexcept { return state_; }

 private:
  static constexpr int index(side s) noexcept { return static_cast<int>(s); }
  // Takes the waiters that are to be had off the list, in their order, linked by `next`.
  [[nodiscard]] waits::node* claim_all(side s) noexcept;
  static void resume_all(waits::node* first) noexcept;
  void close_and_unlock(std::exception_ptr why) noexcept;

  base::lock lock_;
  const news_state& state_;
  base::atomic<std::uint64_t> version_{0};  // written under the lock
  base::atomic<bool> closed_{false};  // written under the lock
  std::exception_ptr error_;
  waits::node* waiters_[2] = {};  // writers that wait until there is no reader, readers that wait for news
  std::uint32_t ends_[2] = {1, 1};
};

}  // namespace weft::inline v1::chan
