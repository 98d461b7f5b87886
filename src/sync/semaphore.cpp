#include "sync/semaphore.hpp"

#include <new>

#include "base/check.hpp"
#include <weft/errors.hpp>

namespace weft::inline v1::locks {

// ---- the word and the list, with the lock ---------------------------------------------------------------------------

// From now on, until W is cleared, only the holder of the lock changes the word (sync.P1).
void permit_operation::freeze() noexcept {
  // relaxed: whoever takes permits under the lock does so in publish(), which acquires.
  semaphore_->word_.fetch_or(semaphore_core::waiting, base::relaxed);
}

// Returns false if there were enough permits; they are then taken.
bool semaphore_core::publish(request& r) noexcept {
  std::uint64_t w = word_.fetch_or(waiting, base::order<"semaphore.publish">(base::acquire)) | waiting;
  if (base::check<"semaphore.publish.enough">(waiters_.empty() && w / one >= r.wants)) {
    // release: whoever acquires the rest sees what was released to us.
    word_.store(w - waiting - r.wants * one, base::order<"semaphore.publish.rest">(base::release));
    return false;
  }
  waiters_.link_last(r);
  return true;
}

// Gives from `permits` to the waiters, in order, as long as there are enough for the first one. Returns what is left.
std::uint64_t semaphore_core::grant(std::uint64_t permits, claimed_waiters& to) noexcept {
  while (waits::node* n = waiters_.first()) {
    const std::uint64_t wants = static_cast<request*>(n)->wants;
    if (wants > permits) break;
    if (!waiters_.claim(*n, task::wake_reason::data)) continue;  // sync.P3
    permits -= wants;
    to.add(*n);
  }
  return permits;
}

// A request that leaves the list may have kept those behind it from permits that are there (sync.P2).
void semaphore_core::unpublish(request& r) noexcept {
  if (!is_waited_for()) return;
  waiters_.unlink(r);
  claimed_waiters granted;
  std::uint64_t permits = word_.load(base::relaxed) / one;
  base::step<"semaphore.pass_on">([&] { permits = grant(permits, granted); });
  // release pairs with the acquire in try_take(): this store continues the release of all stores before it.
  word_.store(permits * one | (waiters_.empty() ? 0 : waiting), base::order<"semaphore.leave">(base::release));
  granted.resume();
}

// ---- without the lock -----------------------------------------------------------------------------------------------

bool semaphore_core::give_to_waiters(std::uint64_t n) noexcept {
  claimed_waiters granted;
  lock_.acquire();
  const std::uint64_t w = word_.load(base::relaxed);
  if (base::check<"semaphore.give.second_look">((w & waiting) == 0)) {
    lock_.release();
    return give(n);
  }
  const std::uint64_t before = w / one;
  if (n > semaphore::max() - before) {
    lock_.release();
    return false;
  }
  const std::uint64_t left = grant(before + n, granted);
  if (!waiters_.empty()) {
    word_.store(left * one | waiting, base::relaxed);
    lock_.release();
  } else {
    // Permits that nobody on the list wants are given by the compare-exchange of give(), so that it is the last access
    // (sync.P4).
    word_.store(0, base::relaxed);
    lock_.release();
    if (left != 0) (void)give(left);
  }
  granted.resume();
  return true;
}

bool permit_operation::try_complete() noexcept { return semaphore_->try_take(entry_.wants); }
bool permit_operation::publish(waits::node&) noexcept { return semaphore_->publish(entry_); }
void permit_operation::unpublish(waits::node&) noexcept { semaphore_->unpublish(entry_); }
base::lock* permit_operation::own_lock() noexcept { return &semaphore_->lock_; }
waits::subject permit_operation::what() const noexcept {
  static constexpr waits::wait_kind semaphore_kind{"semaphore", waits::kind_number::semaphore};
  return {&semaphore_kind, semaphore_};
}

void acquire(semaphore_core& s, std::uint64_t n, std::source_location where) {
  if (undisturbed() != nullptr && s.try_take(n)) [[likely]]
    return;
  pass_suspension_point(where);
  if (s.try_take(n)) return;
  permit_operation op(s, n);
  complete(op, where);
}

bool try_acquire_until(semaphore_core& s, std::uint64_t n, std::chrono::steady_clock::time_point when,
                       std::source_location where) {
  pass_suspension_point(where);
  if (s.try_take(n)) return true;
  permit_operation op(s, n);
  return complete_until(op, when, where);
}

}  // namespace weft::inline v1::locks

namespace weft::inline v1 {

using locks::core_in;
using locks::semaphore_core;

semaphore::semaphore(std::size_t permits) {
  if (permits > max()) detail::throw_usage("a semaphore has at most semaphore::max() permits");
  ::new (&core_in<semaphore_core>(room_)) semaphore_core(permits);
}
semaphore::~semaphore() {
  base::require(!core_in<semaphore_core>(room_).is_waited_for(),
                "a semaphore is destroyed while it is waited for; let it live until every task that uses it has ended");
}
void semaphore::acquire(std::size_t n, std::source_location where) {
  if (n > max()) [[unlikely]]
    detail::throw_usage("more permits are wanted than a semaphore can ever have", where);
  locks::acquire(core_in<semaphore_core>(room_), n, where);
}
bool semaphore::try_acquire_until(std::chrono::steady_clock::time_point when, std::size_t n,
                                  std::source_location where) {
  if (n > max()) [[unlikely]]
    detail::throw_usage("more permits are wanted than a semaphore can ever have", where);
  return locks::try_acquire_until(core_in<semaphore_core>(room_), n, when, where);
}
bool semaphore::try_acquire(std::size_t n) noexcept { return core_in<semaphore_core>(room_).try_take(n); }
void semaphore::release(std::size_t n) {
  if (!core_in<semaphore_core>(room_).give(n)) [[unlikely]]
    detail::throw_usage("a semaphore is given more than semaphore::max() permits");
}
std::size_t semaphore::available() const noexcept { return core_in<const semaphore_core>(room_).permits(); }
locks::permit_operation semaphore::operation(std::size_t n) noexcept {
  return locks::permit_operation(core_in<semaphore_core>(room_), n);
}

}  // namespace weft::inline v1
