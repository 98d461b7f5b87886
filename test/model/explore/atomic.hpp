// The exploring twin of src/base/atomic.hpp: the same names, every operation a switch point of the explorer.
//
// Same size and layout as in the product, so the code under test keeps its static_asserts; the explorer finds what it
// knows of an object by its address.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "explore/mutation.hpp"
#include "explore/ops.hpp"

namespace weft::inline v1::base {

using std::memory_order;
inline constexpr memory_order relaxed = std::memory_order_relaxed;
inline constexpr memory_order acquire = std::memory_order_acquire;
inline constexpr memory_order release = std::memory_order_release;
inline constexpr memory_order acq_rel = std::memory_order_acq_rel;
inline constexpr memory_order seq_cst = std::memory_order_seq_cst;

namespace twin {

template <class T>
explore::word bits(const T& value) noexcept {
  explore::word w = 0;
  std::memcpy(&w, &value, sizeof(T));
  return w;
}
template <class T>
T value(explore::word w) noexcept {
  T t;
  std::memcpy(static_cast<void*>(&t), &w, sizeof(T));
  return t;
}
// The failure order that std::atomic derives from a single order.
constexpr memory_order without_release(memory_order o) noexcept {
  return o == acq_rel ? acquire : o == release ? relaxed : o;
}
template <class T>
struct difference {
  using type = T;
};
template <class T>
struct difference<T*> {
  using type = std::ptrdiff_t;
};
struct set {
  template <class T>
  static T apply(T, T b) {
    return b;
  }
};
struct add {
  template <class T, class D>
  static T apply(T a, D b) {
    return static_cast<T>(a + b);
  }
};
struct sub {
  template <class T, class D>
  static T apply(T a, D b) {
    return static_cast<T>(a - b);
  }
};
struct band {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct bor {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct bxor {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct larger {
  template <class T>
  static T apply(T a, T b) {
    return a < b ? b : a;
  }
};
template <class Op, class T, class D>
explore::word apply(explore::word old, explore::word operand) noexcept {
  return bits<T>(Op::apply(value<T>(old), value<D>(operand)));
}

}  // namespace twin

template <class T>
class atomic {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(explore::word));
  using where = explore::where;
  using D = typename twin::difference<T>::type;

 public:
  using value_type = T;
  static constexpr bool is_always_lock_free = true;

  constexpr atomic() noexcept : atomic(T{}) {}
  constexpr atomic(T v) noexcept : value_(v) {
    if (!std::is_constant_evaluated() && explore::exploring)
      explore::born(this, twin::bits(v), std::is_pointer_v<T> ? explore::sort::pointer : explore::sort::value);
  }
  constexpr ~atomic() {
    if (!std::is_constant_evaluated() && explore::exploring) explore::died(this);
  }
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load(memory_order o = seq_cst, where w = where::current()) const noexcept {
    if (!explore::exploring) return value_;
    return twin::value<T>(explore::load(this, twin::bits(value_), o, w));
  }
  void store(T v, memory_order o = seq_cst, where w = where::current()) noexcept {
    if (!explore::exploring)
      value_ = v;
    else
      explore::store(this, twin::bits(value_), twin::bits(v), o, w);
  }
  T exchange(T v, memory_order o = seq_cst, where w = where::current()) noexcept {
    return modify<twin::set, T>(v, o, "exchange", w);
  }
  T fetch_add(D d, memory_order o = seq_cst, where w = where::current()) noexcept {
    return modify<twin::add, D>(d, o, "fetch_add", w);
  }
  T fetch_sub(D d, memory_order o = seq_cst, where w = where::current()) noexcept {
    return modify<twin::sub, D>(d, o, "fetch_sub", w);
  }
  T fetch_and(T v, memory_order o = seq_cst, where w = where::current()) noexcept {
    return modify<twin::band, T>(v, o, "fetch_and", w);
  }
  T fetch_or(T v, memory_order o = seq_cst, where w = where::current()) noexcept {
    return modify<twin::bor, T>(v, o, "fetch_or", w);
  }
  T fetch_xor(T v, memory_order o = seq_cst, where w = where::current()) noexcept {
    return modify<twin::bxor, T>(v, o, "fetch_xor", w);
  }
  void raise(T to, where w) noexcept { modify<twin::larger, T>(to, relaxed, "raise", w); }  // only for the clock

  bool compare_exchange_strong(T& expected, T desired, memory_order o = seq_cst, where w = where::current()) noexcept {
    return compare_exchange(expected, desired, o, twin::without_release(o), false, w);
  }
  bool compare_exchange_strong(T& expected, T desired, memory_order success, memory_order failure,
                               where w = where::current()) noexcept {
    return compare_exchange(expected, desired, success, failure, false, w);
  }
  bool compare_exchange_weak(T& expected, T desired, memory_order o = seq_cst, where w = where::current()) noexcept {
    return compare_exchange(expected, desired, o, twin::without_release(o), true, w);
  }
  bool compare_exchange_weak(T& expected, T desired, memory_order success, memory_order failure,
                             where w = where::current()) noexcept {
    return compare_exchange(expected, desired, success, failure, true, w);
  }

  bool is_lock_free() const noexcept { return true; }
  explore::word initial_bits() const noexcept { return twin::bits(value_); }

 private:
  template <class Op, class Operand>
  T modify(Operand d, memory_order o, const char* what, where w) noexcept {
    if (!explore::exploring) {
      T old = value_;
      value_ = twin::value<T>(twin::apply<Op, T, Operand>(twin::bits(old), twin::bits(d)));
      return old;
    }
    return twin::value<T>(
        explore::modify(this, twin::bits(value_), &twin::apply<Op, T, Operand>, twin::bits(d), o, what, w));
  }
  bool compare_exchange(T& expected, T desired, memory_order success, memory_order failure, bool weak,
                        where w) noexcept {
    explore::word e = twin::bits(expected);
    bool done;
    if (!explore::exploring) {
      done = twin::bits(value_) == e;
      if (done)
        value_ = desired;
      else
        e = twin::bits(value_);
    } else {
      done = explore::compare_exchange(this, twin::bits(value_), e, twin::bits(desired), success, failure, weak, w);
    }
    if (!done) expected = twin::value<T>(e);
    return done;
  }

  T value_;  // the initial value while exploring, the value otherwise
};

// Assembler code writes it, too; what is read is what is there.
template <class T>
class raw_atomic {
 public:
  constexpr raw_atomic(T v) noexcept : value_(v) {}
  raw_atomic(const raw_atomic&) = delete;
  raw_atomic& operator=(const raw_atomic&) = delete;
  T load(memory_order) const noexcept { return *const_cast<const volatile T*>(&value_); }
  void store(T v, memory_order) noexcept { *const_cast<volatile T*>(&value_) = v; }
  T fetch_or(T bits, memory_order order) noexcept {
    const T before = load(order);
    store(before | bits, order);
    return before;
  }

 private:
  T value_;
};

// Watched for data races. An access is no switch point: races are found by vector clocks in any schedule.
template <class T>
class plain {
  using where = explore::where;

 public:
  constexpr plain() : plain(T{}) {}
  constexpr plain(T value) : value_(value) {
    if (!std::is_constant_evaluated() && explore::exploring) explore::born(this, 0, explore::sort::plain);
  }
  constexpr ~plain() {
    if (!std::is_constant_evaluated() && explore::exploring) explore::died(this);
  }
  plain(const plain&) = delete;
  plain& operator=(const plain&) = delete;
  plain& operator=(T value) {  // an operator cannot know its line: reported as "after" the thread's last step
    if (explore::exploring) explore::plain_write(this, where{});
    value_ = value;
    return *this;
  }
  operator T() const { return get(where{}); }
  T get(where w = where::current()) const {
    if (explore::exploring) explore::plain_read(this, w);
    return value_;
  }
  T operator->() const { return get(where{}); }

 private:
  T value_;
};

inline void fence_seq_cst(explore::where w = explore::where::current()) noexcept {
  if (explore::exploring) explore::fence(seq_cst, w);
}

// This loop waits for another thread: the explorer lets somebody else make a step before this thread goes on.
inline void cpu_relax(explore::where w = explore::where::current()) noexcept {
  if (explore::exploring) explore::relax(w);
}

constexpr int spin_limit(int) noexcept { return 1; }

using time_ns = std::int64_t;
inline constexpr time_ns never_ns = INT64_MAX;
constexpr time_ns spin_time(time_ns) noexcept { return 0; }
inline void linger(int) noexcept {}

inline void add_alone(raw_atomic<std::uint32_t>& to, std::uint32_t n) noexcept {
  to.store(to.load(relaxed) + n, relaxed);
}
inline void add_alone(atomic<std::uint64_t>& to, std::uint64_t n) noexcept { to.store(to.load(relaxed) + n, relaxed); }

// What base::now() says. A thread that reads an old value has looked at the clock earlier, as far as anybody can tell.
inline atomic<time_ns> virtual_clock{time_ns{1} << 40};
// Time passes, at least until `to`.
inline void pass_time(time_ns to, explore::where w = explore::where::current()) noexcept { virtual_clock.raise(to, w); }

// A finite deadline may pass at any moment; without one, only a wake (or options.spurious) ends the sleep.
inline void futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t deadline = never_ns,
                       explore::where w = explore::where::current()) noexcept {
  if (explore::exploring && explore::futex_wait(&word, word.initial_bits(), expected, deadline != never_ns, w))
    pass_time(deadline, w);
}
inline void futex_wake(atomic<std::uint32_t>* word, int count = 1,
                       explore::where w = explore::where::current()) noexcept {
  if (explore::exploring) explore::futex_wake(word, count, w);
}

}  // namespace weft::inline v1::base
