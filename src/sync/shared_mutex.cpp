#include "sync/shared_mutex.hpp"

#include "base/check.hpp"
#include <weft/errors.hpp>
#include <weft/shared_mutex.hpp>

namespace weft::inline v1::locks {

// ---- the word and the lists, with the lock --------------------------------------------------------------------------

// Returns false if the mutex was free for this access; it is then taken.
bool shared_mutex_core::publish(access a, waits::node& n) noexcept {
  // acquire as in try_take(). From here on only the holder of the lock changes the word (sync.R2).
  const std::uint64_t w = word_.fetch_or(waiting, base::order<"rwlock.publish">(base::acquire)) & ~waiting;
  const bool first = a == access::write || writers_.empty();
  if (base::check<"rwlock.publish.free">(first && admits(w, a))) {
    // release: whoever comes next sees what others did before they unlocked.
    word_.store((w + weight(a)) | others(), base::order<"rwlock.publish.taken">(base::release));
    return false;
  }
  list_of(a).link_last(n);
  return true;
}

// Lets waiters in (sync.R3). Takes a word without W, and returns it with those that were let in.
std::uint64_t shared_mutex_core::admit(std::uint64_t w, claimed_waiters& in) noexcept {
  while (admits(w, access::write)) {
    waits::node* n = writers_.first();
    if (n == nullptr) break;
    if (!writers_.claim(*n, task::wake_reason::data)) continue;
    in.add(*n);
    w += writing;
  }
  if (!writers_.empty() || !admits(w, access::read)) return w;
  while (waits::node* n = readers_.claim_first(task::wake_reason::data)) {
    in.add(*n);
    w += reader;
  }
  return w;
}

// A writer that leaves the list may have kept readers out.
void shared_mutex_core::unpublish(access a, waits::node& n) noexcept {
  std::uint64_t w = word_.load(base::relaxed);
  if ((w & waiting) == 0) return;
  list_of(a).unlink(n);
  w &= ~waiting;
  claimed_waiters in;
  base::step<"rwlock.pass_on">([&] { w = admit(w, in); });
  // release pairs with the acquire in try_take(): this store continues the release of all stores before it.
  word_.store(w | others(), base::order<"rwlock.leave">(base::release));
  in.resume();
}

// ---- without the lock -----------------------------------------------------------------------------------------------

void shared_mutex_core::release_to_waiters(access a) noexcept {
  claimed_waiters in;
  lock_.acquire();
  const std::uint64_t seen = word_.load(base::relaxed);
  if (base::check<"rwlock.second_look">((seen & waiting) == 0)) {  // others may change the word (sync.R2)
    lock_.release();
    return release(a);
  }
  const std::uint64_t w = seen & ~waiting;
  if (!holds(w, a)) [[unlikely]]
    fail_not_held(a);
  const std::uint64_t freed = w - weight(a);
  const std::uint64_t next = admit(freed, in);
  if (next == freed && others() == 0) {
    // All waiters have left. The word still says "held", so that the last access is the compare-exchange of release()
    // (sync.R4).
    word_.store(w, base::relaxed);
    lock_.release();
    return release(a);
  }
  // release pairs with the acquire in try_take().
  word_.store(next | others(), base::order<"rwlock.release_slow">(base::release));
  lock_.release();
  in.resume();
}

void shared_mutex_core::fail_not_held(access a) noexcept {
  base::fail(a == access::write ? "a shared_mutex is unlocked that no writer holds"
                                : "a shared_mutex is unlocked that no reader holds");
}

namespace {

void check_not_held(const shared_mutex_core& m, owner me, std::source_location where) {
  if (m.is_written_by(me)) [[unlikely]]
    weft::detail::throw_usage("a shared_mutex is locked by who holds it already: it would wait for itself", where);
}

// Only a writer is noted. Nobody knows which task is a reader.
void note_held(const shared_mutex_core& m, access a, std::source_location where) noexcept {
  if (a == access::write) now_held(&m, "shared_mutex", where);
}

void lock_slowly(shared_mutex_core& m, access a, std::source_location where) {
  pass_suspension_point(where);
  const owner me = this_owner();
  if (m.try_take(a, me)) return;
  check_not_held(m, me, where);
  access_operation op(m, a, me);
  complete(op, where);
  op.note_writer();
}

}  // namespace

void lock(shared_mutex_core& m, access a, std::source_location where) {
  sched::worker* on = undisturbed();
  if (on == nullptr || !m.try_take(a, owner_of(*on->current()))) [[unlikely]]
    lock_slowly(m, a, where);
  note_held(m, a, where);
}

bool lock_until(shared_mutex_core& m, access a, std::chrono::steady_clock::time_point when,
                std::source_location where) {
  pass_suspension_point(where);
  const owner me = this_owner();
  if (!m.try_take(a, me)) {
    check_not_held(m, me, where);
    access_operation op(m, a, me);
    if (!complete_until(op, when, where)) return false;
    op.note_writer();
  }
  note_held(m, a, where);
  return true;
}

}  // namespace weft::inline v1::locks

namespace weft::inline v1 {

using locks::access;
using locks::core_in;
using locks::shared_mutex_core;

shared_mutex::~shared_mutex() {
  base::require(core_in<shared_mutex_core>(room_).is_idle(),
                "a shared_mutex is destroyed while it is held or waited for; let it live until every task that uses it "
                "has ended");
}
void shared_mutex::lock(std::source_location where) {
  locks::lock(core_in<shared_mutex_core>(room_), access::write, where);
}
void shared_mutex::lock_shared(std::source_location where) {
  locks::lock(core_in<shared_mutex_core>(room_), access::read, where);
}
bool shared_mutex::try_lock_until(std::chrono::steady_clock::time_point when, std::source_location where) {
  return locks::lock_until(core_in<shared_mutex_core>(room_), access::write, when, where);
}
bool shared_mutex::try_lock_shared_until(std::chrono::steady_clock::time_point when, std::source_location where) {
  return locks::lock_until(core_in<shared_mutex_core>(room_), access::read, when, where);
}
bool shared_mutex::try_lock() noexcept {
  shared_mutex_core& core = core_in<shared_mutex_core>(room_);
  if (!core.try_take(access::write, locks::this_owner())) return false;
  locks::now_held(&core, "shared_mutex");
  return true;
}
bool shared_mutex::try_lock_shared() noexcept { return core_in<shared_mutex_core>(room_).try_take(access::read, 0); }
void shared_mutex::unlock() noexcept {
  shared_mutex_core& core = core_in<shared_mutex_core>(room_);
  if constexpr (base::checked_build)
    if (core.is_written()) {
      if (!core.is_written_by(locks::this_owner()))
        base::fail("a shared_mutex is unlocked by another task or thread than the one that holds it");
      locks::no_longer_held(&core);
    }
  core.release(access::write);
}
void shared_mutex::unlock_shared() noexcept { core_in<shared_mutex_core>(room_).release(access::read); }

}  // namespace weft::inline v1
