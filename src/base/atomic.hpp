// The one place that knows atomics, fences and futexes (docs/decisions/0001-one-alias-for-atomics.md).
//
// All other files use base::atomic, base::fence_seq_cst and base::futex_wait. In the product these are std::atomic and
// the kernel's futex. In the model build the same names are exploring twins (test/model), so the real protocols run
// through every interleaving. Under TSan, which does not understand fences, a fence is a read-modify-write of one
// shared word.
#pragma once

#if defined(WEFT_MODEL)
#include "explore/atomic.hpp"  // test/model: the same names, every operation a switch point
#else

#include <atomic>
#include <cstdint>

#include "base/mutation.hpp"

#if defined(__SANITIZE_THREAD__)
#define WEFT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_TSAN 1
#endif
#endif

namespace weft::inline v1::base {

template <class T>
using atomic = std::atomic<T>;

// An atomic that assembler code writes as well. The explorer looks at its memory and does not explore it.
template <class T>
using raw_atomic = std::atomic<T>;

using std::memory_order;
inline constexpr memory_order relaxed = std::memory_order_relaxed;
inline constexpr memory_order acquire = std::memory_order_acquire;
inline constexpr memory_order release = std::memory_order_release;
inline constexpr memory_order acq_rel = std::memory_order_acq_rel;
inline constexpr memory_order seq_cst = std::memory_order_seq_cst;

// A variable that, by protocol, only one thread at a time may access. It costs nothing here; the model build watches it
// for data races.
template <class T>
class plain {
 public:
  plain() = default;
  plain(T value) : value_(value) {}
  plain(const plain&) = delete;
  plain& operator=(const plain&) = delete;
  plain& operator=(T value) {
    value_ = value;
    return *this;
  }
  operator T() const { return value_; }
  T get() const { return value_; }
  T operator->() const { return value_; }

 private:
  T value_{};
};

// A full barrier between the stores before it and the loads after it, in the single total order of all such fences.
inline void fence_seq_cst() noexcept {
#if defined(WEFT_TSAN)
  static std::atomic<int> everyone{0};
  everyone.fetch_add(0, std::memory_order_seq_cst);
#elif defined(__x86_64__)
  // g++ compiles the fence to this except in cold functions, and clang does so from version 20 on; the others use
  // mfence. For ordinary memory any locked instruction is as strong as mfence, and it takes 4 ns instead of 22. It does
  // not change the memory that it writes to.
  asm volatile("lock orl $0, (%%rsp)" ::: "memory", "cc");
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// Adds to a variable that only the calling thread writes. It is not an atomic step, but others see either the old value
// or the new one.
inline void add_alone(std::atomic<std::uint64_t>& to, std::uint64_t n) noexcept {
#if defined(__x86_64__) && !defined(WEFT_TSAN)
  asm("addq %1, %0" : "+m"(reinterpret_cast<std::uint64_t&>(to)) : "er"(n));  // compilers emit three instructions
#else
  to.store(to.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
#endif
}

inline void add_alone(std::atomic<std::uint32_t>& to, std::uint32_t n) noexcept {
#if defined(__x86_64__) && !defined(WEFT_TSAN)
  asm("addl %1, %0" : "+m"(reinterpret_cast<std::uint32_t&>(to)) : "er"(n));
#else
  to.store(to.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
#endif
}

// Tells the processor, and the explorer ("let another thread run"), that this loop waits for another thread.
inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// How often a bounded spin tries: n times; once under the explorer, where every further try only repeats the first.
constexpr int spin_limit(int n) noexcept { return n; }

// Nanoseconds of the steady clock; never_ns waits without a limit.
using time_ns = std::int64_t;
inline constexpr time_ns never_ns = INT64_MAX;

// How long a search continues before it gives up: for t; for one round under the explorer, whose clock stands still.
constexpr time_ns spin_time(time_ns t) noexcept { return t; }

// A pause between two looks at something that may change but need not. The caller waits for nothing, so this is not a
// step of the explorer.
inline void linger(int n) noexcept {
  for (int i = 0; i < n; ++i) cpu_relax();
}

// Sleeps while word == expected, until it is woken or until the deadline. It may return early without a reason, so
// callers loop.
void futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected, time_ns deadline = never_ns) noexcept;
// Wakes up to `count` sleepers. It uses only the address; the word may already be gone.
void futex_wake(atomic<std::uint32_t>* word, int count = 1) noexcept;

}  // namespace weft::inline v1::base
#endif
