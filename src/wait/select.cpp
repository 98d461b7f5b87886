// Select: one wait that is published on several waitables at once.
//
// E1. One claim decides: every node carries the same ticket, so whoever claims first wins and the rest are stale.
//                                                                             model/select, test wait/select_*
// E2. Every lock is held from the last look to the committed park, and what could change without its lock is frozen, so
//     "nothing is ready" is true of one moment, and of two ready arms the preferred one wins. Before that arms may be tried
//     alone, as long as any that is ready may win: of a fair select all up to one that cannot be tried, of an ordered one the first.
//                                                                             model/select, test wait/select_*
// E3. Locks are taken in the order of their addresses, each once.             model/select (both orders)
// E4. The frame outlives the committer, who reads the list of locks in it: before a woken select returns, every lock has been
//     taken once more, by it or by the one who woke it, and the committer's last unlock is its last touch. By code: in model/select
//     the waiter commits for itself.
// E5. Of the arms that are ready a fair select takes each with the same probability, whichever they are.  test wait/fair_select_*
//
// Rejected: a "winner" flag beside the word (a second decision, with a gap between the two); unlocking before the switch (a
// waker would meet a half-parked waiter).
#include <array>
#include <functional>
#include <memory>

#include "base/lock.hpp"
#include "base/log.hpp"
#include "sched/scheduler.hpp"
#include "wait/fiber_wait.hpp"
#include "wait/thread_waiter.hpp"
#include <weft/detail/select_core.hpp>

namespace weft::inline v1::waits {
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
    entry* to = entries_;
    for (std::uint32_t i = 0; i < arms.size(); ++i)
      if (arms[i].what != nullptr) {
        arms[i].entry->arm = i;
        *to++ = {nullptr, arms[i].what, arms[i].entry};
      }
    end_ = to;
    prepare();
  }
  arm_set(const arm_set&) = delete;
  arm_set& operator=(const arm_set&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(end_ - entries_); }
  // An arm that stands twice in the list has one node for two places, and one lock.
  [[nodiscard]] bool has_repetition() const noexcept {
    if (!shares_locks_) [[likely]]
      return false;
    for (std::uint32_t i = 0; i < arms_.size(); ++i)
      if (arms_[i].what != nullptr && arms_[i].entry->arm != i) return true;
    return false;
  }

  // Before each wait: a waitable may have another lock each time (a timer: that of the worker it is on).
  void prepare() noexcept {
    // Few arms: sorted by insertion.
    for (entry* next = entries_; next != end_; ++next) {
      entry e = *next;
      e.what->prepare();
      e.lock = e.what->own_lock();
      entry* to = next;
      for (; to != entries_ && !std::less<>()(to[-1].lock, e.lock); --to) {
        if (e.lock == to[-1].lock) {
          shares_locks_ = true;
          break;
        }
        *to = to[-1];
      }
      *to = e;
    }
  }
  void lock() noexcept {
    for (const entry* e = entries_; e != end_; ++e)
      if (is_first(e)) acquire(e->lock);
  }
  // The last unlock is the last touch of this object (E4).
  void unlock() noexcept {
    for (const entry *e = end_, *first = entries_; e != first;)
      if (is_first(--e)) release(e->lock);
  }
  // Takes the nodes of all arms off, lock by lock. One has been taken off with its lock held, by the one who woke us for it.
  void withdraw(const node* taken_off) noexcept {
    for (const entry* e = entries_; e != end_;) {
      if (e->where == taken_off && !shares_locks_) {
        ++e;
        continue;
      }
      base::lock* const held = e->lock;
      acquire(held);
      do {
        e->what->unpublish(*e->where);
        ++e;
      } while (e != end_ && !is_first(e));
      release(held);
    }
  }
  // With every lock held.
  void unpublish() noexcept {
    for (const entry* e = entries_; e != end_; ++e) e->what->unpublish(*e->where);
  }
  void address_nodes(task::parkable& who, task::ticket ticket) noexcept {
    for (const entry* e = entries_; e != end_; ++e) {
      e->where->who = &who;
      e->where->ticket = ticket;
    }
  }
  // Beside timers.
  [[nodiscard]] bool has_several_sources() const noexcept {
    int sources = 0;
    for (const entry* e = entries_; e != end_ && sources < 2; ++e)
      if (e->what->deadline() == base::never_ns) ++sources;
    return sources > 1;
  }
  [[nodiscard]] std::uint32_t earliest() const noexcept {
    const entry* best = entries_;
    for (const entry* e = entries_; e != end_; ++e)
      if (e->what->deadline() < best->what->deadline()) best = e;
    return best->where->arm;
  }

 private:
  struct entry {
    base::lock* lock;
    waitable* what;
    node* where;
  };
  static constexpr std::size_t inline_capacity = 8;

  static void acquire(base::lock* l) noexcept {
    if (l != nullptr) [[likely]]
      l->acquire();
  }
  static void release(base::lock* l) noexcept {
    if (l != nullptr) [[likely]]
      l->release();
  }

  [[nodiscard]] bool is_first(const entry* e) const noexcept {
    return !shares_locks_ || e == entries_ || e->lock != e[-1].lock;
  }

  std::span<const arm> arms_;
  entry small_[inline_capacity];
  std::unique_ptr<entry[]> large_;
  entry* entries_ = small_;
  entry* end_;
  bool shares_locks_ = false;  // two arms have the same; more often than not it stays so
};

class selection {
 public:
  selection(std::span<const arm> arms, preference p, look_order order, bool or_nothing)
      : arms_(arms),
        set_(arms),
        order_(order),
        preference_(p),
        or_nothing_(or_nothing) {}

  [[nodiscard]] bool has_repetition() const noexcept { return set_.has_repetition(); }
  [[nodiscard]] bool can_end() const noexcept { return set_.size() != 0 || or_nothing_; }
  [[nodiscard]] bool has_several_sources() const noexcept { return set_.has_several_sources(); }

  enum class step : std::uint8_t { settle, nothing, cancelled, published };
  // Locks everything and either completes an arm (winner()), or publishes all. `published`: the locks are still held.
  [[nodiscard]] step begin(task::parkable& self, bool interruptible) noexcept {
    set_.lock();
    const bool at_one_moment = set_.size() > 1 && (or_nothing_ || preference_ == preference::in_order);
    winner_ = order_.find(arms_.size(), [&](std::size_t i) {
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
      winner_ = order_.find(arms_.size(), [&](std::size_t i) {
        return arms_[i].what != nullptr && !arms_[i].what->publish(*arms_[i].entry);
      });
    if (!cancelled && winner_ == nothing_ready) return step::published;
    set_.unpublish();
    self.word.abort_park();
    set_.unlock();
    return cancelled ? step::cancelled : step::settle;
  }

  // After the park. True: somebody completed an arm for us (winner()).
  [[nodiscard]] bool end(const task::parkable& self) noexcept {
    const std::uint64_t value = self.wake_value;
    const bool completed = task::reason_of(value) == wake_reason::data;
    if (completed) winner_ = task::arm_of(value);
    const bool taken_off = completed && !woke_itself_;
    base::step<"select.withdraw">([&] { set_.withdraw(taken_off ? arms_[winner_].entry : nullptr); });
    if (!completed) set_.prepare();
    return completed;
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
    woke_itself_ = self.word.wake(ticket) == task::wake_result::claimed;
    if (woke_itself_)
      self.wake_value = task::wake_value(wake_reason::data, timed);
    else
      (void)self.sleep();
  }
  static void unlock_all(void* p) noexcept { static_cast<selection*>(p)->set_.unlock(); }

 private:
  std::span<const arm> arms_;
  arm_set set_;
  look_order order_;
  preference preference_;
  bool or_nothing_;
  bool woke_itself_ = false;
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
    // Before the locks are released, and so before anybody can wake it.
    if (s.has_several_sources()) self.extras |= task::waits_for_several;
    sched::worker::park(*on, &selection::unlock_all, &s);
    self.extras &= static_cast<task::extra>(~task::waits_for_several);
    if (s.end(self)) return s.winner();
    on = sched::this_worker();
  }
}

// nullptr on an outside thread.
sched::worker* this_task_worker() noexcept {
  sched::worker* on = sched::this_worker();
  return on != nullptr && on->current() != nullptr ? on : nullptr;
}

// A number below the limit, another one each time. Mixed well (the finalizer of splitmix64): neighbouring draws must not depend on
// each other.
[[gnu::noinline]] std::uint32_t any_below(std::uint32_t limit) noexcept {
  static base::atomic<std::uint32_t> calls{0};
  std::uint64_t mixed = calls.fetch_add(1, base::relaxed) * std::uint64_t{0x9e3779b97f4a7c15};
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  mixed ^= mixed >> 31;
  return static_cast<std::uint32_t>((mixed >> 32) * limit >> 32);
}
std::uint32_t any_below(sched::worker* on, std::uint32_t limit) noexcept {
  return on != nullptr ? on->random().below(limit) : any_below(limit);
}

// ---- the order of a fair select --------------------------------------------------------------------------------------
//
// E5 holds because every order of the arms is drawn with the same probability, before any of them is looked at. Whichever are ready,
// each of these then comes first with the same probability: exchanging two of them in every order maps the orders in which
// the one comes first onto those in which the other does, one to one. (The draws are uniform up to 24 in 2^32.) The look with
// locks has the order of the one without: an arm that cannot be tried alone ends the first look, and keeps its place before
// those behind it.
//
// Rejected: a random start, from which one looks around in a circle (an arm behind others that are never ready wins for all
// of them); a random start and a random direction or stride (the same in weaker form from four arms on: too few orders).

// The orders of up to four arms, as look_order has them: those of n are the first n!, and behind them the other arms keep
// their places.
constexpr std::array<std::uint32_t, 5> factorial{1, 1, 2, 6, 24};
constexpr auto short_orders = [] {
  std::array<std::uint16_t, 24> orders{static_cast<std::uint16_t>(look_order::front_to_back)};
  // The n-th arm changes places with each before it, in every order of those, and also stays where it is.
  for (std::uint32_t n = 2; n <= 4; ++n)
    for (std::uint32_t k = 1; k < n; ++k)
      for (std::uint32_t i = 0; i < factorial[n - 1]; ++i) {
        const std::uint32_t from = orders[i], moved = from >> 4 * (k - 1) & 15, last = n - 1;
        orders[k * factorial[n - 1] + i] =
            static_cast<std::uint16_t>(from ^ (moved ^ last) << 4 * (k - 1) ^ (moved ^ last) << 4 * last);
      }
  return orders;
}();

// Up to sixteen arms: each further one takes the place of any before it, which moves to the end, or stays there itself. So
// the n! equally probable sequences of draws lead to the n! orders, one to one.
[[gnu::noinline]] std::uint64_t any_longer_order(sched::worker* on, std::size_t arms) noexcept {
  std::uint64_t order = short_orders[any_below(on, factorial[4])];
  for (std::uint32_t last = 4; last < arms; ++last) {
    const std::uint32_t place = any_below(on, last + 1);
    const std::uint64_t moved = order >> 4 * place & 15;  // zero at its own place, which is empty yet
    order ^= (moved ^ last) << 4 * place;
    order |= moved << 4 * last;
  }
  return order;
}
std::uint64_t any_order(sched::worker* on, std::size_t arms) noexcept {
  if (arms < factorial.size()) [[likely]]
    return short_orders[any_below(on, factorial[arms])];
  return arms <= look_order::most_packed ? any_longer_order(on, arms) : look_order::front_to_back;
}

// A task whose cancellation is due, or whose budget is spent, goes the long way.
bool is_undisturbed(sched::worker* on) noexcept {
  return on == nullptr || ((on->current()->word.peek() & state_word::cancel_requested) == 0 && on->spend_budget());
}

}  // namespace

glance begin_select(std::size_t arms, preference p) noexcept {
  sched::worker* on = this_task_worker();
  const bool undisturbed = is_undisturbed(on);
  // In order, only the first: a later arm might be seen ready after a better one became so.
  if (p == preference::in_order) return {look_order::front_to_back, undisturbed ? reach::first : reach::nowhere};
  return {any_order(on, arms), undisturbed ? reach::everywhere : reach::nowhere};
}

void draw_order(std::span<std::uint32_t> all) noexcept {
  sched::worker* on = this_task_worker();
  for (std::uint32_t last = 0; last < all.size(); ++last) {
    const std::uint32_t place = any_below(on, last + 1);
    all[last] = all[place];
    all[place] = last;
  }
}

std::size_t select_with_locks(std::span<const arm> arms, preference p, look_order order, bool or_nothing,
                              std::source_location where) {
  selection s(arms, p, order, or_nothing);
  if (!s.can_end())
    weft::detail::throw_usage("every arm of this select is disabled and there is no otherwise: it would wait for ever");
  if (s.has_repetition())
    weft::detail::throw_usage("an arm stands twice in this select; name its channel twice, or make two timers");
  sched::worker* on = this_task_worker();
  return on == nullptr ? select_in_thread(s) : select_in_task(s, on, !or_nothing, where);
}

std::size_t select_in_order(std::span<const arm> arms, std::source_location where) {
  const glance look = begin_select(arms.size(), preference::in_order);
  if (look.how_far != reach::nowhere && arms[0].what->try_complete()) return 0;
  return select_with_locks(arms, preference::in_order, look_order(), false, where);
}

}  // namespace weft::inline v1::waits
