// The numbers of the monitor, each with the reason for it. docs/decisions/0009-monitor-and-elastic-pool.md has the
// measurements in full. All were made on a shared virtual machine, in turns with the other runtimes.
#pragma once

#include <cstddef>

#include "base/atomic.hpp"

namespace weft::inline v1::sched {

struct monitor_limits {
  // --- how long a nap is between two looks --------------------------------------------------------------------------
  // A look costs a timer and two switches of threads. One look every 250 to 400 µs took 5 to 10 % of a processor. So
  // this nap is for times when somebody is stuck, and for the first look after all have slept.
  static constexpr base::time_ns shortest_nap = 250'000;
  // While alert. Two of these naps and the start of a thread (100 µs) are a millisecond, which is how long a block
  // without notice may last.
  static constexpr base::time_ns alert_nap = 400'000;
  // While something waits behind a busy worker where an idle one does not see it: a task in the slot, or a timer. With
  // 1 ms such a task is late by less than the 10 ms by which a task behind a blocking one may be late. A task that
  // sleeps 10 ms at a time cost 78 ms of CPU time in 3 s, against 147 ms with looks every 250 µs.
  static constexpr base::time_ns careful_nap = 1'000'000;
  // While all workers advance. The first task that blocks waits for two of these. wake_latency: p99 of 178, 59 and 43
  // µs in three rounds with 5 ms; 158, 65 and 58 with 1 ms; 196, 45 and 39 with 20 ms. CPU time of the sleeping task
  // above: 32 ms with 5 ms, 26 with 20.
  static constexpr base::time_ns longest_nap = 5'000'000;
  // While all sleep. A worker that works next is stuck for at most one of these before the monitor looks at it.
  static constexpr base::time_ns longest_idle_nap = 10'000'000;
  // The same while alert. The monitor then rests and is woken by whoever leaves the idle set, so this bounds only the
  // trim and the departure of workers that are to leave.
  static constexpr base::time_ns longest_idle_rest = 32'000'000;
  // Timer slack of the monitor's thread, in nanoseconds. The kernel's 50 µs would add a fifth to the shortest nap.
  static constexpr unsigned long precise = 1;

  // --- who is stuck -----------------------------------------------------------------------------------------------
  // A worker is stuck if it is in one task for so long at two looks. This is shorter than the shortest nap, so that the
  // second look finds it.
  static constexpr base::time_ns stuck_after = 200'000;
  // A worker that is stuck for this long is a reason to be alert even though nothing waits yet. A shorter block needs
  // no rescue, because two alert naps are longer.
  static constexpr base::time_ns alarming_after = 1'000'000;
  // Whoever blocks once blocks again. Servers block at least once in some seconds.
  static constexpr base::time_ns stay_alert = 10'000'000'000;
  // A look that comes this late says nothing about workers. The process was stopped, or the machine is overloaded.
  static constexpr base::time_ns was_stopped_after = 100'000'000;
  // How often the kernel is asked about a thread, depending on its last answer. Reading /proc/self/task/N/stat takes
  // some 10 µs.
  static constexpr base::time_ns ask_sleeping_every = 10'000'000;
  static constexpr base::time_ns ask_running_every = 2'000'000;
  // No worker comes to a timer that has been due for this long. Busy workers look about every millisecond, and more
  // often while tasks are short.
  static constexpr base::time_ns overdue = 100'000;

  // --- what is done about it ----------------------------------------------------------------------------------------
  // How many tasks are taken from behind a stuck worker at one look. This is a guess: a fork tree should stay where it
  // is if it can.
  static constexpr std::size_t most_taken = 32;
  // How long the pool does not grow after a thread could not be had. A machine that has none to give is not asked at
  // every look (test faults/threads).
  static constexpr base::time_ns growth_pause = 100'000'000;

  // How often it is asked, while somebody works, whether tasks wait for each other. With a wait of half a second before, a
  // cycle is told after about a second. A guess: what a look costs has not been measured.
  static constexpr base::time_ns look_for_cycles_every = 500'000'000;

  // --- while all sleep ----------------------------------------------------------------------------------------------
  // While alert the monitor does not rest at once. A worker that works every millisecond should not pay for a second
  // futex call each time.
  static constexpr base::time_ns back_off_after = 5'000'000;
  // After nobody has worked for this long, memory goes back and the process makes no system call any more.
  static constexpr base::time_ns rest_after = 100'000'000;
  // The shortest time between two trims while workers still work for some microseconds now and then. Each trim costs
  // them their caches.
  static constexpr base::time_ns trim_every = 1'000'000'000;
};

}  // namespace weft::inline v1::sched
