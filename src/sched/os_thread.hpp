// What the operating system knows of a thread.
#pragma once

#include "base/atomic.hpp"
#include "base/thread.hpp"

namespace weft::inline v1::sched {

[[nodiscard]] int this_thread_id() noexcept;  // the kernel's
void pin_this_thread(int nth) noexcept;  // to the n-th processor it may use, counted around; without effect if refused
void sleep_precisely() noexcept;  // the calling thread: its waits end when they should, not 50 us later
// Whether that thread of this process waits for something that may take long. Not if it runs, waits for a processor, or is held up in
// the kernel's own work, a disk or a page fault: threads that fill memory wait for each other there, and more of them make it worse.
[[nodiscard]] bool sleeps_in_kernel(int thread_id) noexcept;
// What that thread of this process, which has not been joined, has used of a processor so far.
[[nodiscard]] base::time_ns processor_time(base::thread& of) noexcept;

}  // namespace weft::inline v1::sched
