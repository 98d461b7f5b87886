// What the runtime needs of the machine: stacks, records, threads, and what the process says about itself.
#include <cstdlib>
#include <new>

#include "base/static_init.hpp"
#include "context/stack.hpp"
#include "explore/thread.hpp"
#include "sched/environment.hpp"
#include "sched/os_thread.hpp"
#include "sched/runtimes.hpp"
#include "sched/scheduler.hpp"
#include "sched/upcalls.hpp"
#include "task/record_pool.hpp"

namespace weft::inline v1 {
namespace base {

int static_initializers_running() noexcept { return 0; }

}  // namespace base

namespace context {

void flow::start_on(const stack&) noexcept {}

stack* stack_pool::acquire(std::size_t) noexcept {
  auto* s = new stack;
  s->base = new std::byte[default_stack];
  return s;
}
void stack_pool::release(stack* s) noexcept {
  delete[] s->base;
  delete s;
}

}  // namespace context

namespace task {
namespace {

struct housed {
  slab home;
  fiber inside;
};

}  // namespace

slab* slab::of(const record* r) noexcept {
  return reinterpret_cast<slab*>(reinterpret_cast<std::uintptr_t>(r) - offsetof(housed, inside));
}

record* record_pool::acquire(std::size_t& count) noexcept {
  count = 1;
  users_.fetch_add(1, base::relaxed);
  return &(new housed{{this}, fiber(ticket{0})})->inside;
}

void record_pool::release(record* chain) noexcept {
  while (chain != nullptr) {
    record* next = chain->next;
    delete reinterpret_cast<housed*>(slab::of(chain));
    retire();
    chain = next;
  }
}

void record_pool::retire() noexcept {
  if (users_.fetch_sub(1, base::acq_rel) == 1) delete this;
}

}  // namespace task

namespace sched {

thread_starter start_thread = [](thread_role, std::function<void()> body) { return base::thread(std::move(body)); };
int this_thread_id() noexcept { return 0; }
void pin_this_thread(int) noexcept {}
unsigned long set_timer_slack(unsigned long slack) noexcept { return slack; }
base::time_ns processor_time(base::thread&) noexcept { return 0; }  // not asked of a thread that sleeps
thread_state state_of_thread(int) noexcept { return thread_state::sleeps; }
std::uint32_t fork_generation() noexcept { return 0; }
void list_runtime(scheduler&) {}
void unlist_runtime(scheduler&) noexcept {}
base::time_ns look_for_deadlock(scheduler&, std::uint64_t&) noexcept { return base::never_ns; }
void look_for_cycles(scheduler&, std::uint64_t&) noexcept {}
bool scheduler::is_forked_child() const noexcept { return false; }
void scheduler::leave_to_parent() noexcept {}
void scheduler::refuse_forked_return() noexcept { base::fail("nobody forks here"); }
void report_unhandled(const record&, const std::exception_ptr&) noexcept {
  base::fail("an exception that nobody takes");
}

}  // namespace sched
}  // namespace weft::inline v1
