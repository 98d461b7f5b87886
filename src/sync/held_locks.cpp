#include "sync/held_locks.hpp"

#include <cstdint>

#include "base/check.hpp"
#include "base/lock.hpp"
#include "sched/scheduler.hpp"
#include "sched/upcalls.hpp"
#include "task/name.hpp"
#include "wait/fiber_wait.hpp"

namespace weft::inline v1::locks {
namespace {

struct place {
  base::lock lock;
  const void* held = nullptr;  // this and the members below change only under the lock
  const task::record* by = nullptr;
  const char* what = nullptr;
  std::source_location where;
};

constexpr std::size_t places = 1024;
constinit place table[places];

place& place_of(const void* lock) noexcept {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  return table[reinterpret_cast<std::uintptr_t>(lock) * odd >> 54];
}
static_assert(places == 1U << (64 - 54));

}  // namespace

void note_locked(const void* lock, const char* what, std::source_location where) noexcept {
  task::record* self = waits::current_task();
  if (self == nullptr) return;
  ++self->locks;
  place& p = place_of(lock);
  base::lock_guard guard(p.lock);
  p.held = lock;
  p.by = self;
  p.what = what;
  p.where = where;
}

void note_unlocked(const void* lock) noexcept {
  task::record* self = waits::current_task();
  if (self == nullptr) return;
  --self->locks;
  place& p = place_of(lock);
  base::lock_guard guard(p.lock);
  if (p.held == lock) p.held = nullptr;
}

}  // namespace weft::inline v1::locks

namespace weft::inline v1::sched {

void report_held_lock(const record& ended) noexcept {
  constexpr const char* advice =
      "others wait for it for ever. Unlock it in the task that has locked it, best by std::lock_guard";
  for (locks::place& p : locks::table) {
    base::lock_guard guard(p.lock);
    if (p.held == nullptr || p.by != &ended) continue;
    if (p.where.line() == 0)
      base::failf("task %s has ended and still holds a %s (%p): %s", task::label(ended).text, p.what, p.held, advice);
    base::failf("task %s has ended and still holds a %s (%p) that it locked at %s:%u: %s", task::label(ended).text,
                p.what, p.held, p.where.file_name(), p.where.line(), advice);
  }
  base::failf("task %s has ended and still holds a lock: %s", task::label(ended).text, advice);
}

}  // namespace weft::inline v1::sched
