// Select: one wait that is published on several waitables at once.
//
// wait.E1. One claim decides: every node carries the same ticket, so whoever claims first wins and others are stale.
//     model/select, test wait/select_*
// wait.E2. The last look sees one moment. Every lock is held from that look until the park is committed, and what could
//     change without its lock is frozen. So "nothing is ready" is true of one moment, and of two ready arms the
//     preferred one wins. Before that look a select may try arms alone, as long as any ready arm may win: a fair select
//     tries all arms up to one that cannot be tried alone, an ordered one only the first.
//     model/select, test wait/select_*
// wait.E3. Locks are taken in the order of their addresses, each once.
//     model/select (both orders)
// wait.E4. The frame outlives the stack that commits the park, which reads the list of locks in that frame. Before a
//     woken select returns, every lock has been taken once more, by the select or by its waker, and the committer's
//     last unlock is the last time that it touches the frame. By code: in the explored tests of select the waiter
//     commits for itself.
// wait.E5. Of the arms that are ready a fair select takes each with the same probability, whichever they are.
//     test wait/fair_select_*
//
// Rejected: a "winner" flag beside the word (a second decision, with a gap between the two); unlocking before the
// switch (a waker would meet a half-parked waiter).
#include <array>
#include <functional>
#include <memory>

#include "base/clock.hpp"
#include "base/lock.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "sched/scheduler.hpp"
#include "wait/fiber_wait.hpp"
#include "wait/thread_waiter.hpp"
#include <weft/detail/select_core.hpp>

namespace weft::inline v1::waits {
namespace {

using task::state_word;
using task::wake_reason;

// The enabled arms, in the order of the addresses of their locks (wait.E3).
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
  // Whether one arm stands twice in the list. Its node then has the number of the later place, and its two entries
  // share a lock.
  [[nodiscard]] bool has_repetition() const noexcept {
    if (!shares_locks_) [[likely]]
      return false;
    for (std::uint32_t i = 0; i < arms_.size(); ++i)
      if (arms_[i].what != nullptr && arms_[i].entry->arm != i) return true;
    return false;
  }

  // Called before each look with locks, because a waitable may have another lock each time: a timer has the lock of the
  // worker that it is on. Sorts by insertion, as there are few arms.
  void prepare() noexcept {
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
  // The last unlock is the last access to this object (wait.E4), so both bounds are read before.
  void unlock() noexcept {
    for (const entry *e = end_, *first = entries_; e != first;)
      if (is_first(--e)) release(e->lock);
  }
  // Takes the nodes of all arms off their lists, one lock after the other. `taken_off` is the node that the waker has
  // taken off already, with its lock held. That lock need not be taken again, unless other arms share it.
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
  // Retracts all arms but the one that has completed.
  void retract(const node* completed) noexcept {
    for (const entry* e = entries_; e != end_; ++e)
      if (e->where != completed) e->what->retract();
  }
  // Called with every lock held.
  void unpublish() noexcept {
    for (const entry* e = entries_; e != end_; ++e) e->what->unpublish(*e->where);
  }
  void address_nodes(task::parkable& who, task::ticket ticket) noexcept {
    for (const entry* e = entries_; e != end_; ++e) {
      e->where->who = &who;
      e->where->ticket = ticket;
    }
  }
  // Whether more than one arm is something else than a timer.
  [[nodiscard]] bool has_several_sources() const noexcept {
    int sources = 0;
    for (const entry* e = entries_; e != end_ && sources < 2; ++e)
      if (e->what->deadline() == base::never_ns) ++sources;
    return sources > 1;
  }
  // The number of the arm with the earliest deadline.
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

  // Whether `e` is the first of the arms that share its lock. Entries are sorted, so such arms stand side by side.
  [[nodiscard]] bool is_first(const entry* e) const noexcept {
    return !shares_locks_ || e == entries_ || e->lock != e[-1].lock;
  }

  std::span<const arm> arms_;
  entry small_[inline_capacity];
  std::unique_ptr<entry[]> large_;
  entry* entries_ = small_;
  entry* end_;
  bool shares_locks_ = false;  // two arms have had the same lock; never reset, as mostly they have it again
};

constexpr wait_kind select_kind{"select", kind_number::select};

// What a select waits for: all of its arms at once. It is one wait (wait.hpp) that holds the locks of every arm.
class selection {
 public:
  selection(std::span<const arm> arms, preference p, look_order order, bool or_nothing)
      : arms_(arms),
        set_(arms),
        order_(order),
        at_one_moment_(set_.size() > 1 && (or_nothing || p == preference::in_order)) {}

  [[nodiscard]] bool is_empty() const noexcept { return set_.size() == 0; }
  [[nodiscard]] bool has_repetition() const noexcept { return set_.has_repetition(); }
  [[nodiscard]] bool has_several_sources() const noexcept { return set_.has_several_sources(); }
  [[nodiscard]] std::size_t winner() const noexcept { return winner_; }

  // --- what wait.hpp calls ---
  void lock() noexcept { set_.lock(); }
  void unlock() noexcept { set_.unlock(); }
  [[nodiscard]] bool try_complete() noexcept { return false; }
  // Completes the first arm that is ready, in the order of this select. When "ready" has to be true of one moment, each
  // arm is frozen before it is tried, so that no earlier one can become ready while a later one is looked at.
  [[nodiscard]] bool try_locked() noexcept {
    winner_ = order_.find(arms_.size(), [&](std::size_t i) {
      if (arms_[i].what == nullptr) return false;
      if (at_one_moment_) arms_[i].what->freeze();
      return arms_[i].what->try_locked();
    });
    if (winner_ == nothing_ready) return false;
    if (at_one_moment_) set_.unpublish();
    return true;
  }
  // Every node carries the ticket of the one wait (wait.E1).
  [[nodiscard]] bool publish(const node& n) noexcept {
    set_.address_nodes(*n.who, n.ticket);
    was_published_ = true;
    winner_ = order_.find(arms_.size(), [&](std::size_t i) {
      return arms_[i].what != nullptr && !arms_[i].what->publish(*arms_[i].entry);
    });
    if (winner_ == nothing_ready) return true;
    set_.unpublish();
    return false;
  }
  void unpublish(const node&) noexcept { set_.unpublish(); }
  void retract() noexcept {
    set_.retract(nullptr);
    set_.prepare();
  }
  // The waker has completed one arm and taken its node off with its lock held. The nodes of the others are still on
  // their lists. A thread that woke itself at a deadline has taken off none.
  void served(std::uint32_t wake_value) noexcept {
    winner_ = task::arm_of(wake_value);
    base::step<"select.withdraw">([&] { set_.withdraw(woke_itself_ ? nullptr : arms_[winner_].entry); });
    set_.retract(arms_[winner_].entry);
  }
  void settle() {
    // publish() completed one arm after others had been published.
    if (was_published_) set_.retract(arms_[winner_].entry);
    arms_[winner_].what->settle();
  }
  // Dumps find the arms behind this span, in the frame of the one who waits.
  [[nodiscard]] subject what() const noexcept { return {&select_kind, &arms_}; }

  // One look with the locks instead of a wait, for a select with `otherwise`.
  [[nodiscard]] bool try_now() {
    lock();
    const bool completed = try_locked();
    if (!completed && at_one_moment_) set_.unpublish();
    unlock();
    if (completed) settle();
    return completed;
  }

  // The park of an outside thread, which no worker's timers wake: it sleeps until the earliest deadline and then claims
  // itself, as any other waker would. If it loses that claim, it sleeps until the signal of the winner.
  void park_thread(thread_waiter& self) noexcept {
    const std::uint32_t timed = set_.earliest();  // any arm, with no deadline, if none is a timer
    const task::ticket ticket = arms_[timed].entry->ticket;
    const base::time_ns deadline = arms_[timed].what->deadline();
    const bool parked = self.word.commit_park();
    unlock();
    if (!parked || self.sleep(deadline)) return;
    woke_itself_ = self.word.wake(ticket) == task::wake_result::claimed;
    if (woke_itself_)
      self.wake_value = task::wake_value(wake_reason::data, timed);
    else
      (void)self.sleep();
  }

 private:
  std::span<const arm> arms_;
  arm_set set_;
  look_order order_;
  const bool at_one_moment_;  // wait.E2: what could change without a lock is frozen
  bool woke_itself_ = false;
  bool was_published_ = false;
  std::size_t winner_ = nothing_ready;
};

struct waiting_thread {
  thread_waiter self;
  [[nodiscard]] task::parkable& parkable() noexcept { return self; }
  void arrive_at(selection& s) noexcept { self.arrive_at(s); }
  void was_moved() noexcept {}
  void park(selection& s) noexcept { s.park_thread(self); }
};

class waiting_task : public task_waiter {
 public:
  using task_waiter::task_waiter;
  void park(selection& s) noexcept {
    // The flag is set before the locks are released, and so before any waker can read it.
    if (s.has_several_sources()) parkable().extras |= task::waits_for_several;
    task_waiter::park(s);
    parkable().extras &= static_cast<task::extra>(~task::waits_for_several);
  }
};

std::size_t select_in_thread(selection& s) {
  node all;
  waiting_thread self;
  wait<selection> waiting(s, all, false);
  if (drive(waiting, s, self).how == step::settle) s.settle();
  return s.winner();
}

std::size_t select_in_task(selection& s, sched::worker& on, std::source_location where) {
  check_may_suspend(0, where);
  node all;
  waiting_task self(on, where);
  wait<selection> waiting(s, all, can_be_cancelled(on, self.parkable()));
  const ending e = drive(waiting, s, self);
  if (e.how == step::cancelled) throw_cancelled();
  if (e.how == step::settle) {
    s.settle();
    self.was_moved();  // the user's move constructor of an element may have suspended the task
    if (!self.on().has_budget()) self.on().yield();
  }
  return s.winner();
}

// The worker of the running task, or nullptr on an outside thread.
sched::worker* this_task_worker() noexcept {
  sched::worker* on = sched::this_worker();
  return on != nullptr && on->current() != nullptr ? on : nullptr;
}

// An outside thread belongs to no runtime, so it draws its own numbers. The seeds of two threads differ by the address
// of the generator and by the time of the thread's first select. noinline, because a task that resumes on another
// thread must not keep the address of a thread_local.
[[gnu::noinline]] std::uint32_t any_below_outside(std::uint32_t limit) noexcept {
  static thread_local base::random numbers(reinterpret_cast<std::uintptr_t>(&numbers) ^
                                           static_cast<std::uint64_t>(base::now()));
  return numbers.below(limit);
}
std::uint32_t any_below(sched::worker* on, std::uint32_t limit) noexcept {
  return on != nullptr ? on->random().below(limit) : any_below_outside(limit);
}

// ---- the order of a fair select ------------------------------------------------------------------------------------
//
// wait.E5 holds because every order of the arms is drawn with the same probability, before any arm is looked at.
// Whichever arms are ready, each of them comes first among these with the same probability: exchanging two of them in
// every order maps the orders in which the one comes first onto those in which the other does, one to one. (The draws
// are uniform up to 24 in 2^32.) The look with locks uses the same order as the look without: an arm that cannot be
// tried alone ends the first look, and keeps its place before those behind it.
//
// Rejected: a random start and then a circle (an arm that follows several arms that are never ready wins for each of
// them); a random start with a random direction or stride (the same in a weaker form from four arms on, because there
// are too few orders).

// The orders of up to four arms, packed as in look_order. The orders of n arms are the first n! of the table; the other
// arms keep their places behind them.
constexpr std::array<std::uint32_t, 5> factorial{1, 1, 2, 6, 24};
constexpr auto short_orders = [] {
  std::array<std::uint16_t, 24> orders{static_cast<std::uint16_t>(look_order::front_to_back)};
  // In every order of the arms before it, the n-th arm changes places with each of them in turn, and once stays last.
  for (std::uint32_t n = 2; n <= 4; ++n)
    for (std::uint32_t k = 1; k < n; ++k)
      for (std::uint32_t i = 0; i < factorial[n - 1]; ++i) {
        const std::uint32_t from = orders[i], moved = from >> 4 * (k - 1) & 15, last = n - 1;
        orders[k * factorial[n - 1] + i] =
            static_cast<std::uint16_t>(from ^ (moved ^ last) << 4 * (k - 1) ^ (moved ^ last) << 4 * last);
      }
  return orders;
}();

// Up to sixteen arms. Each further arm either takes the place of an arm before it, which moves to the end, or stays at
// the end itself. So the n! equally probable sequences of draws lead to the n! orders, one to one.
[[gnu::noinline]] std::uint64_t any_longer_order(sched::worker* on, std::size_t arms) noexcept {
  std::uint64_t order = short_orders[any_below(on, factorial[4])];
  for (std::uint32_t last = 4; last < arms; ++last) {
    const std::uint32_t place = any_below(on, last + 1);
    const std::uint64_t moved = order >> 4 * place & 15;  // zero if place == last, where nothing stands yet
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

// False for a task whose cancellation was requested or whose budget is spent: its select skips the first look without
// locks. Otherwise one unit of the budget is spent.
bool is_undisturbed(sched::worker* on) noexcept {
  return on == nullptr || ((on->current()->word.peek() & state_word::cancel_requested) == 0 && on->spend_budget());
}

}  // namespace

glance begin_select(std::size_t arms, preference p) noexcept {
  sched::worker* on = this_task_worker();
  const bool undisturbed = is_undisturbed(on);
  // An ordered select tries only the first arm without locks: a later one might be seen ready after a better one has
  // become ready, too.
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
  if (arms.size() > task::most_arms) weft::detail::throw_usage("a select has at most 16,777,216 arms");
  selection s(arms, p, order, or_nothing);
  if (s.is_empty() && !or_nothing)
    weft::detail::throw_usage("every arm of this select is disabled and there is no otherwise: it would wait for ever");
  if (s.has_repetition())
    weft::detail::throw_usage("an arm stands twice in this select; name its channel twice, or make two timers");
  if (or_nothing) {
    check_cancelled();
    return s.try_now() ? s.winner() : nothing_ready;
  }
  sched::worker* on = this_task_worker();
  return on == nullptr ? select_in_thread(s) : select_in_task(s, *on, where);
}

bool look_with_lock(waitable& w) noexcept {
  lock(w);
  const bool ready = w.try_locked();
  unlock(w);
  return ready;
}

std::size_t select_in_order(std::span<const arm> arms, std::source_location where) {
  const glance look = begin_select(arms.size(), preference::in_order);
  if (look.how_far != reach::nowhere && arms[0].what->try_complete()) return 0;
  return select_with_locks(arms, preference::in_order, look_order(), false, where);
}

}  // namespace weft::inline v1::waits
