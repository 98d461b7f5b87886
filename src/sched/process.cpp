// What a runtime needs of the process around it: threads that start, forks that are noticed.
#include <pthread.h>

#include <system_error>

#include "sched/scheduler.hpp"

namespace weft::inline v1::sched {

void forget_this_worker() noexcept;  // worker_loop.cpp

namespace {

base::atomic<std::uint32_t> generation{0};

// In the child only the forking thread lives on. It must not find its worker any more: switching would run the parent's tasks
// a second time.
void on_forked_child() {
  generation.fetch_add(1, base::relaxed);
  forget_this_worker();
}

template <class Pointer>
void leak(Pointer& p) noexcept {
  [[maybe_unused]] auto* lost = p.release();
}

base::thread start_std_thread(std::function<void()> body) try {
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

bool scheduler::is_forked_child() const noexcept { return generation.load(base::relaxed) != fork_generation_; }

// The child of a fork leaves the scope of a runtime. Its threads and the tasks on them exist only in the parent: nothing can
// be joined, and stacks may be in use by frames that will never return. Everything is left as it is.
void scheduler::leave_to_parent() noexcept {
  leak(monitor_);
  for (auto& w : workers_) leak(w);
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
