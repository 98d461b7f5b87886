// What a runtime needs of the process around it: threads that start, and forks that are noticed.
#include <pthread.h>

#include <system_error>

#include "base/known_threads.hpp"
#include "sched/runtimes.hpp"
#include "sched/scheduler.hpp"

namespace weft::inline v1::sched {

void forget_this_worker() noexcept;  // worker_loop.cpp

namespace {

base::atomic<std::uint32_t> generation{0};

// In the child only the forking thread lives on. It must not find its worker any more, because a switch would run the
// parent's tasks a second time.
void on_forked_child() {
  generation.fetch_add(1, base::relaxed);
  forget_this_worker();
  base::forget_known_threads();
  forget_runtimes();
}

template <class Pointer>
void leak(Pointer& p) noexcept {
  [[maybe_unused]] auto* lost = p.release();
}

base::thread start_std_thread(thread_role, std::function<void()> body) try {
  return base::thread(std::move(body));
} catch (const std::system_error& e) {
  throw std::system_error(e.code(),
                          "weft: no thread could be started (ulimit -u and the cgroup's pids.max limit them)");
}

}  // namespace

thread_starter start_thread = &start_std_thread;

std::uint32_t fork_generation() noexcept {
  static const int registered = pthread_atfork(nullptr, nullptr, &on_forked_child);
  (void)registered;
  return generation.load(base::relaxed);
}

bool scheduler::is_forked_child() const noexcept {
  return generation.load(base::relaxed) != records_->origin_of_all().fork_generation;
}

// The child of a fork leaves the scope of a runtime. The runtime's threads and the tasks on them exist only in the
// parent. Nothing can be joined, and stacks may be in use by frames that will never return. So everything is left as it
// is.
void scheduler::leave_to_parent() noexcept {
  leak(monitor_);
  poller_.leak();
  pool_.leak();
  stacks_.leak();
  leak(records_);
}

void scheduler::refuse_forked_return() noexcept {
  base::fail(
      "a forked child returned from the task that forked it; the runtime stays behind in the parent. Call exec or "
      "_exit "
      "in the child");
}

}  // namespace weft::inline v1::sched
