#include "base/lock.hpp"

namespace weft::inline v1::base {
namespace {

#if !defined(WEFT_MODEL)
thread_local int held_by_this_thread = 0;
thread_local raw_atomic<bool>* told_of_waits = nullptr;
#endif

// Shows, to whoever asked for it, that this thread sleeps for one of our locks.
class noted_wait {
 public:
#if defined(WEFT_MODEL)
  noted_wait() noexcept {}
#else
  noted_wait() : flag_(told_of_waits) { set(true); }
  ~noted_wait() { set(false); }
#endif
  noted_wait(const noted_wait&) = delete;
  noted_wait& operator=(const noted_wait&) = delete;

#if !defined(WEFT_MODEL)
 private:
  void set(bool waits) noexcept {
    if (flag_ != nullptr) flag_->store(waits, relaxed);
  }
  raw_atomic<bool>* const flag_;
#endif
};

}  // namespace

// noinline, because a fiber may call this on one thread and again on another.
[[gnu::noinline]] int locks_held() noexcept {
#if defined(WEFT_MODEL)
  return 0;
#else
  asm volatile("" ::: "memory");
  return held_by_this_thread;
#endif
}

[[gnu::noinline]] void lock::count_held([[maybe_unused]] int change) noexcept {
#if !defined(WEFT_MODEL)
  asm volatile("" ::: "memory");
  held_by_this_thread += change;
#endif
}

void tell_of_lock_waits([[maybe_unused]] raw_atomic<bool>* flag) noexcept {
#if !defined(WEFT_MODEL)
  told_of_waits = flag;
#endif
}

[[gnu::noinline]] void lock::acquire_slow() noexcept {
  // The holder is nearly always a few instructions away from the release. If it was preempted, spinning only takes time
  // from it.
  constexpr int spins = spin_limit(40);
  for (int i = 0; i < spins; ++i) {
    std::uint32_t seen = word_.load(relaxed);
    if (seen == 0 && word_.compare_exchange_strong(seen, 1, order<"lock.acquire_spin">(base::acquire), relaxed)) return;
    if (seen == 2) break;
    cpu_relax();
  }
  // From here on, whoever takes the lock leaves the word at 2, because others may sleep behind it. At worst this causes
  // one wake too many.
  const noted_wait noted;
  while (word_.exchange(2, order<"lock.acquire_slow">(base::acquire)) != 0) futex_wait(word_, 2);
}

}  // namespace weft::inline v1::base
