// The threads of the process that Weft knows: its own ones, and those outside that have waited in Weft. Whoever wants to
// prove that nothing can wake a task (observe/deadlock_rule.hpp) compares them with the threads that the kernel lists.
//
// An outside thread *rests* while it waits in Weft without a deadline. It does nothing by itself then: a waker has to
// claim and signal it, or the runtime that it closes has to end. Only waits that sleep on a futex are noted.
//
// base.T1. A thread that is seen to rest has not been signalled, as far as the one who looks knows of the wakers: a
//     waker says so before it wakes the thread.
//     By code: nobody but thread_waiter::signal() wakes the thread.
// base.T2. A thread is an own one only between two moments at which it runs. So one that the kernel lists and that is
//     known as an own one, by its number, belongs to Weft. By code: class own_thread.
// base.T3. Whoever has looked at the threads and wants to look again hears of every rest that it has not seen. The
//     thread notes its rest, has a fence, and then asks whether somebody wants to hear of it. The other one says that it
//     wants to, has a fence, and then looks.
//     test observe/a_thread_that_joins_late_*
#pragma once

#if defined(WEFT_MODEL)
#include "explore/known_threads.hpp"
#else

#include <cstdint>

#include "base/atomic.hpp"

namespace weft::inline v1::base {

class known_thread {
 public:
  // The entry of the calling thread, which is made at the first call. nullptr while the thread ends.
  [[nodiscard]] static known_thread* of_caller() noexcept;

  known_thread(const known_thread&) = delete;
  known_thread& operator=(const known_thread&) = delete;

  // Called by the thread before anybody can claim it.
  void expects_signal() noexcept { is_signalled_.store(false, relaxed); }
  // Called by the waker before it wakes the thread (base.T1). relaxed: the waker is a worker that goes to sleep later,
  // or a thread that rests later, and whoever proves something has seen that happen.
  void was_signalled() noexcept { is_signalled_.store(true, relaxed); }

 private:
  friend class own_thread;
  friend class thread_rest;
  friend struct thread_list;
  struct of_this_thread;
  known_thread() noexcept = default;

  known_thread* next_ = nullptr;  // under the list's lock, like the next three
  known_thread* previous_ = nullptr;
  int id_ = 0;  // the kernel's number of it
  std::uint32_t process_ = 0;  // grows with every fork: the entry of a forking thread is none of the child's list
  atomic<bool> is_own_{false};
  atomic<bool> is_signalled_{false};
  atomic<std::uint64_t> rests_{0};  // how often it has begun to rest
  atomic<const void*> rests_in_{nullptr};
};

// The calling thread belongs to Weft from here on, until this ends.
class own_thread {
 public:
  own_thread() noexcept;
  ~own_thread();
  own_thread(const own_thread&) = delete;
  own_thread& operator=(const own_thread&) = delete;

 private:
  known_thread* const who_;
};

// The calling thread, `who`, rests for as long as this lives: until it is signalled, or in something that it closes.
class thread_rest {
 public:
  explicit thread_rest(known_thread* who) noexcept : thread_rest(who, who) {}
  thread_rest(known_thread* who, const void* closes) noexcept;
  ~thread_rest();
  thread_rest(const thread_rest&) = delete;
  thread_rest& operator=(const thread_rest&) = delete;

 private:
  known_thread* const who_;
};

// What is seen of one thread.
struct thread_sight {
  int id;
  bool is_own;
  bool rests;
  const void* closes;  // what it rests in, unless it waits to be signalled
  std::uint64_t number;  // of its rest: a thread that is seen twice with the same number has rested all the time
};
// Calls see(argument, thread) for each known thread. No thread that is known ends meanwhile.
void for_each_known_thread(void (*see)(void* argument, const thread_sight& t), void* argument) noexcept;

// From now on the function is called when a thread begins to rest, once (base.T3). nullptr: nobody wants to hear of it.
void tell_of_rests(void (*hears)() noexcept) noexcept;

// In the child of a fork: only the calling thread is there, and it is known anew when it waits.
void forget_known_threads() noexcept;

}  // namespace weft::inline v1::base
#endif
