// Which locks tasks hold: in checked builds, to tell of a task that ends with one. Nothing at all in others.
//
// How many a task holds is counted in its record, which is exact. Which they are and where they were locked is kept in a table
// that never grows and allocates nothing: one lock may take the place of another there, and then the report has no place to name.
#pragma once

#include <source_location>

#include "task/task.hpp"

namespace weft::inline v1::locks {

// `lock` is a "mutex" or the like. By the one who has just got it, and by the one who is about to give it back.
void note_locked(const void* lock, const char* what, std::source_location where) noexcept;
void note_unlocked(const void* lock) noexcept;

inline void now_held(const void* lock, const char* what, std::source_location where) noexcept {
  if constexpr (task::counts_locks) note_locked(lock, what, where);
}
// By try_lock, which is not told where it is called.
inline void now_held(const void* lock, const char* what) noexcept { now_held(lock, what, std::source_location()); }
inline void no_longer_held(const void* lock) noexcept {
  if constexpr (task::counts_locks) note_unlocked(lock);
}

}  // namespace weft::inline v1::locks
