// Select: one wait that is published on several waitables at once.
//
// E1. One claim decides: every node carries the same ticket, so whoever claims first wins and the rest are stale.
//                                                                             model/select, test wait/select_*
// E2. Every lock is held from the first look to the committed park, and what could change without its lock is frozen, so
//     "nothing is ready" is true of one moment, and of two ready arms the preferred one wins.
//                                                                             model/select, test wait/select_*
// E3. Locks are taken in the order of their keys, each once.                  model/select (both orders)
// E4. The frame outlives the committer, who reads the list of locks in it: a woken select takes every lock before it
//     returns, and the committer's last unlock is its last touch.             model/select
//
// Rejected: a "winner" flag beside the word (a second decision, with a gap between the two); unlocking before the switch (a
// waker would meet a half-parked waiter).
#include <algorithm>
#include <memory>

#include "base/log.hpp"
#include "sched/scheduler.hpp"
#include "wait/fiber_wait.hpp"
#include "wait/thread_waiter.hpp"
#include <weft/detail/select_core.hpp>

namespace weft::inline v1::wait {
namespace {

using task::state_word;
using task::wake_reason;

// The enabled arms, in the order of their locks.
class arm_set {
 public:
  explicit arm_set(std::span<const arm> arms) : arms_(arms) {
    if (arms.size() > inline_capacity) {
      large_ = std::make_unique<entry[]>(arms.size());
      entries_ = large_.get();
    }
    for (std::uint32_t i = 0; i < arms.size(); ++i)
      if (arms[i].what != nullptr) {
        arms[i].entry->arm = i;
        entries_[size_++] = {0, i};
      }
  }
  arm_set(const arm_set&) = delete;
  arm_set& operator=(const arm_set&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // An arm that stands twice in the list has one node for two places.
  [[nodiscard]] bool has_repetition() const noexcept {
    return std::any_of(entries_, entries_ + size_, [&](const entry& e) { return arms_[e.arm].entry->arm != e.arm; });
  }

  // A waitable may have another lock each time (a timer: that of the worker it is on).
  void prepare() noexcept {
    for (entry& e : entries()) {
      arms_[e.arm].what->prepare();
      e.key = arms_[e.arm].what->order_key();
    }
    const auto by_key = [](const entry& a, const entry& b) { return a.key != b.key ? a.key < b.key : a.arm < b.arm; };
    std::sort(entries_, entries_ + size_, by_key);
  }
  void lock() noexcept {
    for (std::size_t i = 0; i < size_; ++i)
      if (is_first(i)) arms_[entries_[i].arm].what->lock();
  }
  // The last unlock is the last touch of this object (E4).
  void unlock() noexcept {
    for (std::size_t i = size_; i-- > 0;)
      if (is_first(i)) arms_[entries_[i].arm].what->unlock();
  }
  // Takes the nodes of all arms off, lock by lock.
  void withdraw() noexcept {
    for (std::size_t i = 0; i < size_; ++i) {
      waitable& w = *arms_[entries_[i].arm].what;
      if (is_first(i)) w.lock();
      w.unpublish(*arms_[entries_[i].arm].entry);
      if (i + 1 == size_ || is_first(i + 1)) w.unlock();
    }
  }
  // With every lock held.
  void unpublish() noexcept {
    for (const entry& e : entries()) arms_[e.arm].what->unpublish(*arms_[e.arm].entry);
  }
  void address_nodes(task::parkable& who, task::ticket ticket) noexcept {
    for (const entry& e : entries()) {
      node& n = *arms_[e.arm].entry;
      n.who = &who;
      n.ticket = ticket;
    }
  }
  [[nodiscard]] std::uint32_t earliest() const noexcept {
    std::uint32_t best = entries_[0].arm;
    for (std::size_t i = 1; i < size_; ++i)
      if (arms_[entries_[i].arm].what->deadline() < arms_[best].what->deadline()) best = entries_[i].arm;
    return best;
  }

 private:
  struct entry {
    std::uintptr_t key;
    std::uint32_t arm;
  };
  static constexpr std::size_t inline_capacity = 8;

  [[nodiscard]] std::span<entry> entries() noexcept { return {entries_, size_}; }
  [[nodiscard]] bool is_first(std::size_t i) const noexcept { return i == 0 || entries_[i].key != entries_[i - 1].key; }

  std::span<const arm> arms_;
  std::size_t size_ = 0;
  entry small_[inline_capacity];
  std::unique_ptr<entry[]> large_;
  entry* entries_ = small_;
};

// Goes through the arms once, from a starting point on.
class circle {
 public:
  circle(std::size_t size, std::size_t start) noexcept : size_(size), start_(start) {}
  template <class F>
  [[nodiscard]] std::size_t find(F&& f) const {
    for (std::size_t i = start_; i < size_; ++i)
      if (f(i)) return i;
    for (std::size_t i = 0; i < start_; ++i)
      if (f(i)) return i;
    return nothing_ready;
  }

 private:
  std::size_t size_;
  std::size_t start_;
};

// In which order this select goes through its arms.
struct way {
  circle order;
  preference prefers;
  bool look_everywhere;  // at the first look; else only where it starts
};

// Without locks. In order, only the first: a later arm might be seen ready after a better one became so.
std::size_t first_look(std::span<const arm> arms, const way& how) noexcept {
  bool more = true;
  return how.order.find([&](std::size_t i) {
    if (!more || arms[i].what == nullptr) return false;
    more = how.look_everywhere;
    return arms[i].what->try_complete();
  });
}

class selection {
 public:
  selection(std::span<const arm> arms, const way& how, bool or_nothing)
      : arms_(arms),
        set_(arms),
        order_(how.order),
        preference_(how.prefers),
        or_nothing_(or_nothing) {}

  [[nodiscard]] bool has_repetition() const noexcept { return set_.has_repetition(); }
  [[nodiscard]] bool can_end() const noexcept { return set_.size() != 0 || or_nothing_; }

  enum class step : std::uint8_t { settle, nothing, cancelled, published };
  // Locks everything and either completes an arm (winner()), or publishes all. `published`: the locks are still held.
  [[nodiscard]] step begin(task::parkable& self, bool interruptible) noexcept {
    set_.prepare();
    set_.lock();
    const bool at_one_moment = set_.size() > 1 && (or_nothing_ || preference_ == preference::in_order);
    winner_ = order_.find([&](std::size_t i) {
      if (arms_[i].what == nullptr) return false;
      if (at_one_moment) arms_[i].what->freeze();
      return arms_[i].what->try_locked();
    });
    if (winner_ != nothing_ready || or_nothing_) {
      if (at_one_moment) set_.unpublish();
      set_.unlock();
      return winner_ == nothing_ready ? step::nothing : step::settle;
    }
    self.wake_value = task::wake_value(wake_reason::none, 0);
    const std::uint64_t word = self.word.begin_park(interruptible ? state_word::interruptible : 0);
    set_.address_nodes(self, state_word::ticket_of(word));
    const bool cancelled = interruptible && (word & state_word::cancel_requested) != 0;
    if (!cancelled)
      winner_ = order_.find(
          [&](std::size_t i) { return arms_[i].what != nullptr && !arms_[i].what->publish(*arms_[i].entry); });
    if (!cancelled && winner_ == nothing_ready) return step::published;
    set_.unpublish();
    self.word.abort_park();
    set_.unlock();
    return cancelled ? step::cancelled : step::settle;
  }

  // After the park. True: somebody completed an arm for us (winner()).
  [[nodiscard]] bool end(const task::parkable& self) noexcept {
    base::step<"select.withdraw">([&] { set_.withdraw(); });
    const std::uint64_t value = self.wake_value;
    if (task::reason_of(value) != wake_reason::data) return false;
    winner_ = task::arm_of(value);
    return true;
  }

  [[nodiscard]] std::size_t winner() const noexcept { return winner_; }
  void settle() { arms_[winner_].what->settle(); }

  // An outside thread has no wheel: it wakes itself, by the same claim.
  void sleep(thread_waiter& self) noexcept {
    const std::uint32_t timed = set_.earliest();
    node& n = *arms_[timed].entry;
    const task::ticket ticket = n.ticket;
    const base::time_ns deadline = arms_[timed].what->deadline();
    const bool parked = self.word.commit_park();
    set_.unlock();
    if (!parked || self.sleep(deadline)) return;
    if (self.word.wake(ticket) == task::wake_result::claimed)
      self.wake_value = task::wake_value(wake_reason::data, timed);
    else
      (void)self.sleep();
  }
  static void unlock_all(void* p) noexcept { static_cast<selection*>(p)->set_.unlock(); }

 private:
  std::span<const arm> arms_;
  arm_set set_;
  circle order_;
  preference preference_;
  bool or_nothing_;
  std::size_t winner_ = nothing_ready;
};

std::size_t select_in_thread(selection& s) {
  for (;;) {
    thread_waiter self;
    switch (s.begin(self, false)) {
      case selection::step::settle: s.settle(); return s.winner();
      case selection::step::cancelled:
      case selection::step::nothing: return nothing_ready;
      case selection::step::published: break;
    }
    s.sleep(self);
    if (s.end(self)) return s.winner();
  }
}

std::size_t select_in_task(selection& s, sched::worker* on, bool may_wait, std::source_location where) {
  task::record& self = *on->current();
  if (may_wait) check_may_suspend(0, where);
  const bool interruptible = self.shields == 0 && !on->is_unwinding();
  for (;;) {
    if (interruptible && (self.word.load() & state_word::cancel_requested) != 0) throw_cancelled();
    note_site(self, "select", nullptr, where);
    switch (s.begin(self, interruptible)) {
      case selection::step::settle:
        s.settle();
        on = sched::this_worker();  // the move of an element may have suspended, and moved us
        if (may_wait && !on->has_budget()) on->yield();
        return s.winner();
      case selection::step::nothing: return nothing_ready;
      case selection::step::cancelled: throw_cancelled();
      case selection::step::published: break;
    }
    WEFT_LOG(park, "task %s parks for select at %s:%u", task::label(self).text, where.file_name(), where.line());
    sched::worker::park(*on, &selection::unlock_all, &s);
    if (s.end(self)) return s.winner();
    on = sched::this_worker();
  }
}

[[gnu::noinline]] std::size_t select_with_locks(std::span<const arm> arms, const way& how, sched::worker* on,
                                                bool or_nothing, std::source_location where) {
  selection s(arms, how, or_nothing);
  if (!s.can_end())
    weft::detail::throw_usage("every arm of this select is disabled and there is no otherwise: it would wait for ever");
  if (s.has_repetition())
    weft::detail::throw_usage("an arm stands twice in this select; name its channel twice, or make two timers");
  return on == nullptr ? select_in_thread(s) : select_in_task(s, on, !or_nothing, where);
}

// Somewhere else each time. Mixed well (the finalizer of splitmix64): neighbouring draws must not depend on each other.
std::uint32_t any_below(std::uint32_t limit) noexcept {
  static base::atomic<std::uint32_t> calls{0};
  std::uint64_t mixed = calls.fetch_add(1, base::relaxed) * std::uint64_t{0x9e3779b97f4a7c15};
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  mixed ^= mixed >> 31;
  return static_cast<std::uint32_t>((mixed >> 32) * limit >> 32);
}

}  // namespace

std::size_t select(std::span<const arm> arms, preference p, bool or_nothing, std::source_location where) {
  sched::worker* on = sched::this_worker();
  if (on != nullptr && on->current() == nullptr) on = nullptr;
  std::size_t start = 0;
  bool look_everywhere = false;
  if (p == preference::fair) {
    const auto size = static_cast<std::uint32_t>(arms.size());
    const auto below = [&](std::uint32_t limit) {
      return on != nullptr ? on->random().below(limit) : any_below(limit);
    };
    start = below(size);
    // Now and then only where it starts: an arm that can be completed only under its lock must not be passed over for ever
    // because another never needs one.
    look_everywhere = below(8) != 0;
  }
  const way how{circle(arms.size(), start), p, look_everywhere};
  // A task whose cancellation is due, or whose budget is spent, goes the long way.
  const bool undisturbed =
      on == nullptr || ((on->current()->word.peek() & state_word::cancel_requested) == 0 && on->spend_budget());
  if (undisturbed) [[likely]]
    if (const std::size_t ready = first_look(arms, how); ready != nothing_ready) return ready;
  return select_with_locks(arms, how, on, or_nothing, where);
}

}  // namespace weft::inline v1::wait
