// The one word that decides (docs/lifecycle.md has the matrix and the table of linearization points).
//
//   63            16 15  14  13  12  11   10   9    8    7    6    5    4    3   2   0
//  [     ticket     ][spare][ET ][ B ][CT ][ F ][ W ][ J ][TP ][ P ][ I ][ C ][WP ][phase]
//
//  phase  what the task is doing; `active` covers RUNNABLE and RUNNING, which only its owner tells apart (task.T3)
//  WP     wake pending: a waker came while it was PARKING
//  C      cancellation requested; sticky               I   this wait is a cancellation point and no shield is held
//  P      the permit of unpark; sticky, one            TP  this wait takes a permit (park_if)
//  J      somebody waits on the join list              W   the result is wanted: a handle exists
//  F      forgiven: an exception dropped the handle, so one that the task ends with does not end the process
//  CT     the cancellation is for the task as a whole; C without CT is for an open scope of the task, and ends with it
//  B      somebody bridges cancellation to a std::stop_token (wait/stop_bridge.hpp)
//  ET     error taken: a joiner has received the exception that the task ended with
//  ticket numbers the waits; never reset, not even when the record is recycled
//
// task.S1. Every change except the owner's own is a compare-exchange of the whole word, so "ticket still valid" and
//     "claimed" are one decision.
//     model/park, test task/state_*
// task.S2. PARKED is left by exactly one winner: wake, cancel and permit race on that one compare-exchange.
//                                          model/state_two_wakers_*, model/park_two_wakers, model/park_*_against_cancel
// task.S3. A waker that meets PARKING only leaves WP; commit_park then makes the claim itself.  model/park, model/state
// task.S4. C and P may be set in any phase. begin_park, a read-modify-write, sees them. The task itself takes C without
//     CT back when it leaves the scope; a cancellation that comes at the same time stays.
//                                model/park_cancel_*, model/park_permit*, model/state, model/scope, test scope/nested_*
// task.S5. A result has one keeper: the handle if it outlives finish(), else the finisher.
//                                                                         model/join, test task/a_result_has_one_keeper
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/check.hpp"

namespace weft::inline v1::task {

enum class phase : std::uint8_t { init, active, parking, parked, done, cancelled };

[[noreturn]] void illegal_transition(const char* from, const char* to) noexcept;
const char* name_of(phase p) noexcept;

using ticket = std::uint64_t;

// What the waker must do next.
enum class wake_result : std::uint8_t {
  claimed,  // the waker owns the task: it writes the reason, then enqueues the task, once
  left_pending,  // the task was about to park; the committing stack enqueues it
  stale,  // that wait is over
};

// What the finisher of a task must do next.
struct finish_result {
  bool finished;  // false if nobody wants the result: dispose of it while RUNNING, then finish_unwanted()
  bool has_joiners;  // wake those on the join list
};

class state_word {
 public:
  static constexpr std::uint64_t phase_mask = 7;
  static constexpr std::uint64_t wake_pending = 1u << 3;
  static constexpr std::uint64_t cancel_requested = 1u << 4;
  static constexpr std::uint64_t interruptible = 1u << 5;
  static constexpr std::uint64_t permit = 1u << 6;
  static constexpr std::uint64_t takes_permit = 1u << 7;
  static constexpr std::uint64_t has_joiners = 1u << 8;
  static constexpr std::uint64_t wanted = 1u << 9;
  static constexpr std::uint64_t forgiven = 1u << 10;
  static constexpr std::uint64_t cancel_task = 1u << 11;
  static constexpr std::uint64_t bridged = 1u << 12;
  static constexpr std::uint64_t error_taken = 1u << 13;
  static constexpr int ticket_shift = 16;
  static constexpr std::uint64_t one_ticket = std::uint64_t{1} << ticket_shift;
  static constexpr std::uint64_t ticket_mask = ~(one_ticket - 1);
  static constexpr std::uint64_t per_wait = wake_pending | interruptible | takes_permit;

  explicit state_word(phase p = phase::init, ticket first = 0) noexcept
      : word_(static_cast<std::uint64_t>(p) | first << ticket_shift) {}

  static phase phase_of(std::uint64_t w) noexcept { return static_cast<phase>(w & phase_mask); }
  static ticket ticket_of(std::uint64_t w) noexcept { return w >> ticket_shift; }
  static bool is_final(std::uint64_t w) noexcept { return phase_of(w) >= phase::done; }

  // Pairs with the release in finish(): whoever sees a final phase sees the result.
  [[nodiscard]] std::uint64_t load() const noexcept { return word_.load(base::order<"state.load">(base::acquire)); }
  [[nodiscard]] std::uint64_t peek() const noexcept { return word_.load(base::relaxed); }

  // --- the spawner, while nobody else knows the task -------------------------------------------------------------
  void reset_for_spawn(bool with_handle) noexcept {
    const std::uint64_t w = peek();
    word_.store((w & ticket_mask) | static_cast<std::uint64_t>(phase::init) | (with_handle ? wanted : 0),
                base::relaxed);
  }
  void spawned() noexcept {  // INIT -> RUNNABLE; the queue's release publishes it
    const std::uint64_t w = peek();
    expect(w, phase::init, "RUNNABLE");
    word_.store(with_phase(w, phase::active), base::relaxed);
  }

  // --- the running task ------------------------------------------------------------------------------------------
  // RUNNING -> PARKING with a new ticket. It is one read-modify-write, so it sees a cancel or permit that was set
  // before (task.S4).
  [[nodiscard]] std::uint64_t begin_park(std::uint64_t wait_flags) noexcept {
    constexpr std::uint64_t step =
        one_ticket + static_cast<std::uint64_t>(phase::parking) - static_cast<std::uint64_t>(phase::active);
    // acquire pairs with the release of request_cancel/grant_permit, whose caller may have stored a reason first.
    // release makes what the task did before visible to those that acquire the word later.
    const std::uint64_t before = word_.fetch_add(step + wait_flags, base::order<"state.begin_park">(base::acq_rel));
    expect(before, phase::active, "PARKING");
    return before + step + wait_flags;
  }
  // PARKING -> RUNNING: the wait turned out not to be needed. The caller has unpublished its nodes.
  void abort_park() noexcept {
    std::uint64_t w = peek();
    for (;;) {
      expect(w, phase::parking, "RUNNING");
      // acquire pairs with the release in wake()/request_cancel(): the task sees a reason that was left for it.
      if (word_.compare_exchange_weak(w, with_phase(w & ~per_wait, phase::active),
                                      base::order<"state.abort_park">(base::acquire), base::relaxed))
        return;
    }
  }
  [[nodiscard]] bool consume_permit() noexcept {
    if ((peek() & permit) == 0) return false;
    // Pairs with the release in grant_permit(): what was done before unpark() is seen after park_if().
    word_.fetch_and(~permit, base::order<"state.consume_permit">(base::acquire));
    return true;
  }

  // Takes back a cancellation that was requested for a scope which the task now leaves. The caller next asks whether
  // the scopes around it are cancelled. Whoever cancels one of those notes it there first and then sets C here, so
  // either the caller sees the note or the bit is set after this.
  void withdraw_cancel() noexcept {
    std::uint64_t w = peek();
    // acquire pairs with the release in set_sticky(): we see the note of a canceller whose bit we take away.
    while ((w & cancel_task) == 0 &&
           !word_.compare_exchange_weak(w, w & ~cancel_requested, base::order<"state.withdraw_cancel">(base::acq_rel),
                                        base::relaxed)) {}
  }
  // From now on whoever requests cancellation tells the bridge. Returns true if it was requested before.
  [[nodiscard]] bool bridge() noexcept {
    // acquire as in begin_park(); release pairs with the acquire in set_sticky(): the canceller finds the bridge.
    return (word_.fetch_or(bridged, base::acq_rel) & cancel_requested) != 0;
  }
  void unbridge() noexcept { word_.fetch_and(~bridged, base::relaxed); }
  [[nodiscard]] bool is_bridged() const noexcept { return (peek() & bridged) != 0; }

  // --- the committing stack --------------------------------------------------------------------------------------
  // PARKING -> PARKED, and returns true. If a wake came meanwhile, it goes straight to RUNNABLE and returns false; the
  // caller then enqueues the task (task.S3). It is always inlined: every stack that finishes a switch has it
  // (task_runner::arrive()), and with one such place more the compiler would call it.
  [[nodiscard]] [[gnu::always_inline]] bool commit_park() noexcept {
    std::uint64_t w = peek();
    for (;;) {
      expect(w, phase::parking, "PARKED");
      const bool woken = base::check<"state.commit_park.pending">((w & wake_pending) != 0);
      const std::uint64_t next = woken ? with_phase(w & ~per_wait, phase::active) : with_phase(w, phase::parked);
      // release: the saved context is complete for whoever claims it; pairs with the acquire of the claiming
      // compare-exchanges. acquire: pairs with the waker that left WP after storing its reason.
      if (word_.compare_exchange_weak(w, next, base::order<"state.commit_park">(base::acq_rel), base::relaxed))
        return !woken;
    }
  }

  // --- wakers ----------------------------------------------------------------------------------------------------
  [[nodiscard]] wake_result wake(ticket t) noexcept {
    std::uint64_t w = peek();
    for (;;) {
      if (base::check<"state.wake.ticket">(ticket_of(w) != t)) return wake_result::stale;
      if (phase_of(w) == phase::parked) {
        if (claim(w)) return wake_result::claimed;
      } else if (phase_of(w) == phase::parking) {
        // release: the task sees the reason stored before; pairs with commit_park/abort_park.
        if (word_.compare_exchange_weak(w, w | wake_pending, base::order<"state.wake.pending">(base::release),
                                        base::relaxed))
          return wake_result::left_pending;
      } else {
        return wake_result::stale;
      }
    }
  }

  [[nodiscard]] wake_result request_cancel() noexcept {
    return set_sticky(cancel_requested | cancel_task, interruptible);
  }
  // A cancellation for as long as the task has a certain scope open: see withdraw_cancel().
  [[nodiscard]] wake_result request_cancel_of_scope() noexcept { return set_sticky(cancel_requested, interruptible); }
  [[nodiscard]] wake_result grant_permit() noexcept { return set_sticky(permit, takes_permit); }

  // --- the end ---------------------------------------------------------------------------------------------------
  // Leaves the result to the handle. Refuses if there is no handle any more: disposing of a result runs the user's
  // destructors, which may suspend, so that must happen before the end. `wanted` is never set again.
  [[nodiscard]] finish_result finish(phase final_phase) noexcept { return finish_from(peek(), final_phase, false); }
  [[nodiscard]] finish_result finish_unwanted(phase final_phase) noexcept {
    return finish_from(peek(), final_phase, true);
  }
  // Called under the join list's lock, with the node linked. Returns false if the task has ended: nobody will wake the
  // joiner.
  [[nodiscard]] bool add_joiner() noexcept {
    std::uint64_t w = peek();
    for (;;) {
      if (is_final(w)) {
        // Pairs with the release in finish().
        (void)load();
        return false;
      }
      // relaxed: the node is linked and the bit is set under join_lock, and a finisher that sees the bit takes
      // join_lock before it looks at the list.
      if (word_.compare_exchange_weak(w, w | has_joiners, base::relaxed, base::relaxed)) return true;
    }
  }
  // Called before drop_result(), by the same holder. A finisher that finds the result unwanted also finds this, in the
  // same word.
  void forgive() noexcept { word_.fetch_or(forgiven, base::relaxed); }
  [[nodiscard]] bool is_forgiven() const noexcept { return (peek() & forgiven) != 0; }
  // relaxed: it is for a task_group whose owner asks. The owner knows of the join in another way, or does not need to
  // know.
  void take_error() noexcept { word_.fetch_or(error_taken, base::relaxed); }
  [[nodiscard]] bool is_error_taken() const noexcept { return (peek() & error_taken) != 0; }
  // The handle gives up the result (task.S5). Returns true if the task has ended; the caller then disposes of the
  // result.
  [[nodiscard]] bool drop_result() noexcept {
    if (is_final(load())) return true;  // finish() has already left it to us
    // acquire pairs with the release in finish(). release: the finisher sees what the holder did.
    return is_final(word_.fetch_and(~wanted, base::order<"state.drop_result">(base::acq_rel)));
  }

 private:
  static std::uint64_t with_phase(std::uint64_t w, phase p) noexcept {
    return (w & ~phase_mask) | static_cast<std::uint64_t>(p);
  }
  static void expect(std::uint64_t w, phase from, const char* to) noexcept {
    if constexpr (base::checked_build)
      if (phase_of(w) != from) [[unlikely]]
        illegal_transition(name_of(phase_of(w)), to);
  }
  [[nodiscard]] finish_result finish_from(std::uint64_t w, phase final_phase, bool disposed) noexcept {
    for (;;) {
      expect(w, phase::active, "DONE or CANCELLED");
      if (!disposed && (w & wanted) == 0) {
        (void)load();  // pairs with the release in drop_result(): we see what the holder did
        return {false, false};
      }
      // release publishes the result to join(). acquire pairs with drop_result() and with what cancel and unpark did.
      if (word_.compare_exchange_weak(w, with_phase(w, final_phase), base::order<"state.finish">(base::acq_rel),
                                      base::relaxed))
        return {true, (w & has_joiners) != 0};
    }
  }
  // PARKED -> (WAKING) -> RUNNABLE in one compare-exchange. The winner owns the task.
  [[nodiscard]] bool claim(std::uint64_t& w) noexcept {
    // acquire: the winner sees the saved context and the frame; pairs with commit_park. release orders the claim before
    // the reason and the enqueue, for whoever looks at the word again.
    return word_.compare_exchange_weak(w, with_phase(w & ~per_wait, phase::active),
                                       base::order<"state.claim">(base::acq_rel), base::relaxed);
  }
  [[nodiscard]] wake_result set_sticky(std::uint64_t bit, std::uint64_t wakes_when) noexcept {
    std::uint64_t w = peek();
    for (;;) {
      const phase p = phase_of(w);
      const bool wakes = (w & wakes_when) != 0;
      std::uint64_t next = w | bit;
      if (is_final(w)) return wake_result::stale;
      if (p == phase::parked && wakes) next = with_phase(next & ~per_wait, phase::active);
      if (p == phase::parking && wakes) next |= wake_pending;
      // acq_rel as in wake() and claim().
      if (!word_.compare_exchange_weak(w, next, base::order<"state.set_sticky">(base::acq_rel), base::relaxed))
        continue;
      if (p == phase::parked && wakes) return wake_result::claimed;
      return wake_result::left_pending;
    }
  }

  base::atomic<std::uint64_t> word_;
};

}  // namespace weft::inline v1::task
