// What the operating system knows of a thread.
#pragma once

#include "base/atomic.hpp"
#include "base/thread.hpp"

namespace weft::inline v1::sched {

[[nodiscard]] int this_thread_id() noexcept;  // the kernel's
void pin_this_thread(int nth) noexcept;  // to the n-th processor it may use, counted around; without effect if refused
// How much later than asked for the calling thread may wake up, in nanoseconds; returns what it was. Threads that it starts inherit it.
unsigned long set_timer_slack(unsigned long slack) noexcept;

// runs: or waits for a processor. sleeps: for something that may take long. held_up: in the kernel's own work, a disk or a page fault;
// threads that fill memory wait for each other there, and more of them make it worse.
enum class thread_state : unsigned char { runs, sleeps, held_up };
[[nodiscard]] thread_state state_of_thread(int thread_id) noexcept;  // of this process
// What that thread of this process, which has not been joined, has used of a processor so far.
[[nodiscard]] base::time_ns processor_time(base::thread& of) noexcept;

}  // namespace weft::inline v1::sched
