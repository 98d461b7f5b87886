#include "sched/os_thread.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace weft::inline v1::sched {

int this_thread_id() noexcept { return ::gettid(); }

void pin_this_thread(int nth) noexcept {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int skip = nth % CPU_COUNT(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || skip-- != 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

base::time_ns processor_time(base::thread& of) noexcept {
  clockid_t clock{};
  timespec used{};
  if (::pthread_getcpuclockid(of.native_handle(), &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return used.tv_sec * base::time_ns{1'000'000'000} + used.tv_nsec;
}

unsigned long set_timer_slack(unsigned long slack) noexcept {
  const int before = ::prctl(PR_GET_TIMERSLACK);
  (void)::prctl(PR_SET_TIMERSLACK, slack);
  return before > 0 ? static_cast<unsigned long>(before) : 50'000;  // the kernel's default
}

// The state is the third word of /proc/self/task/N/stat. It stands behind the name in brackets, which may contain
// anything.
thread_state state_of_thread(int thread_id) noexcept {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread_id);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return thread_state::runs;
  char text[128];
  const ssize_t n = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (n <= 0) return thread_state::runs;
  text[n] = '\0';
  const char* end_of_name = std::strrchr(text, ')');
  if (end_of_name == nullptr || end_of_name[1] != ' ' || end_of_name[2] == 'R') return thread_state::runs;
  return end_of_name[2] == 'D' ? thread_state::held_up : thread_state::sleeps;
}

}  // namespace weft::inline v1::sched
