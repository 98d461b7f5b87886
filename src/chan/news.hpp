// News: a version that grows, an end, and the waiters for either. Oneshot, broadcast and watch have typed states behind
// it.
//
// chan.W1. A reader waits only while the version is not above what it has seen and there is no end. Both change under
//     the lock, and whoever changes them wakes everyone that waits. So nobody waits for what is there already.
//     test chan/*_is_never_missed_*, model/news
// chan.W2. The wait completes no operation: the woken reader looks again, under the lock. Each reader has a place in
//     the stream of its own, so nobody can take what it was woken for, and a cancelled reader has taken nothing.
//     test chan/*_cancelled_*, model/news
// chan.W3. The typed state is accessed only under the lock. The only user code that runs there is one copy, move or
//     swap. What is replaced is destroyed in the writer's frame.
//     test chan/*_destroyed_without_the_lock
// chan.W4. The object is destroyed with the last end of both sides. Every operation runs through a live end.
//     model/news
//
// Rejected: a slot for each waiter that the writer copies to (the writer would pay for the copies of its readers, and
// would get their exceptions).
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
  // Whether the wait of that side is over: a reader waits for news, a writer for the end of the last reader.
  [[nodiscard]] bool is_there(side s, std::uint64_t seen) const noexcept {
    return s == side::reader ? has_news(seen) : ends_[index(side::reader)] == 0;
  }
  void publish(side s, waits::node& n) noexcept { waits::link_last(waiters_[index(s)], n); }
  void unpublish(side s, waits::node& n) noexcept { waits::unlink(waiters_[index(s)], n); }
  [[nodiscard]] bool has_readers() const noexcept { return ends_[index(side::reader)] != 0; }

  // --- with the lock, which is free afterwards ----------------------------------------------------------------------
  void announce_and_unlock() noexcept;

  // --- without -----------------------------------------------------------------------------------------------------
  // relaxed: whoever learns from this that there is something takes the lock to look for it.
  [[nodiscard]] bool has_news(std::uint64_t seen) const noexcept { return version() > seen || is_closed(); }
  [[nodiscard]] std::uint64_t version() const noexcept { return version_.load(base::relaxed); }
  [[nodiscard]] bool is_closed() const noexcept { return closed_.load(base::relaxed); }
  [[nodiscard]] std::exception_ptr error() noexcept;
  void close(std::exception_ptr why) noexcept;
  void add_end(side s) noexcept;
  // Returns true if this was the last end of both sides. The caller then destroys this object.
  [[nodiscard]] bool drop_end(side s) noexcept;

  [[nodiscard]] void* state() noexcept;
  [[nodiscard]] const news_state& layout() const noexcept { return state_; }

 private:
  friend struct weft::detail::observer;
  static constexpr int index(side s) noexcept { return static_cast<int>(s); }
  // Takes all waiters off the list and returns those that it could claim, in their order, linked by `next`.
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
