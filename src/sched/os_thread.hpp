// What the operating system knows of a thread.
#pragma once

#include "base/atomic.hpp"
#include "base/thread.hpp"

namespace weft::inline v1::sched {

[[nodiscard]] int this_thread_id() noexcept;  // the kernel's number of it
// Pins the thread to the n-th processor that it may use, counted around. Has no effect if the system refuses.
void pin_this_thread(int nth) noexcept;
// Sets how much later than asked for the calling thread may wake up, in nanoseconds. Returns the former value. Threads
// that it starts inherit it.
unsigned long set_timer_slack(unsigned long slack) noexcept;

// runs: on a processor, or waiting for one. sleeps: waiting for something that may take long. held_up: in the kernel's
// own work, such as a disk access or a page fault. Threads that fill memory wait for each other there, and more of them
// make it worse.
enum class thread_state : unsigned char { runs, sleeps, held_up };
[[nodiscard]] thread_state state_of_thread(int thread_id) noexcept;  // a thread of this process
// How much processor time that thread has used so far. It belongs to this process and has not been joined.
[[nodiscard]] base::time_ns processor_time(base::thread& of) noexcept;

}  // namespace weft::inline v1::sched
