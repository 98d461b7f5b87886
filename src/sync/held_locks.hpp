// Which locks tasks hold. Checked builds keep this to report a task that ends with a lock; other builds keep nothing.
//
// The number of locks that a task holds is counted in its record, which is exact. Which locks they are, and where they
// were locked, is kept in a table that never grows and allocates nothing. One lock may take the place of another there,
// and then the report names no place.
#pragma once

#include <source_location>

#include "task/task.hpp"

namespace weft::inline v1::locks {

// `what` is the kind of lock, e.g. "mutex". The first is called by the task that has just got the lock, the second by
// the task that is about to release it.
void note_locked(const void* lock, const char* what, std::source_location where) noexcept;
void note_unlocked(const void* lock) noexcept;

inline void now_held(const void* lock, const char* what, std::source_location where) noexcept {
  if constexpr (task::counts_locks) note_locked(lock, what, where);
}
// For try_lock, which does not know where it is called.
inline void now_held(const void* lock, const char* what) noexcept { now_held(lock, what, std::source_location()); }
inline void no_longer_held(const void* lock) noexcept {
  if constexpr (task::counts_locks) note_unlocked(lock);
}

}  // namespace weft::inline v1::locks
