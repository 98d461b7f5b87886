// One execution: virtual threads on stacks of their own inside one OS thread, and what each operation does to them.
//
// A switch point comes before every atomic operation, fence, futex call and cpu_relax. Plain accesses are checked but are no
// switch points: whether they race is a matter of happens-before, which does not depend on where they fall in the schedule.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstdarg>
#include <cstdint>

#include "explore/memory.hpp"
#include "explore/ops.hpp"
#include "explore/search.hpp"

namespace explore {

enum class ending : std::uint8_t { completed, known_state, failed };

struct limits {
  int preemptions = 3;  // < 0: no bound
  int old_reads = 3;  // loads that do not return the newest store, per execution; < 0: no bound
  std::uint32_t steps = 3000;
  int spurious = 0;  // futex waits that may return for no reason, per execution
  int weak_failures = 0;  // compare_exchange_weak that may fail for no reason, per execution
  int early_timeouts = 1;  // deadlines that pass while another thread could still run, per execution
  bool timeout_rescues =
      true;  // false: only sleepers with a deadline are left = a lost wake-up that a time-out would hide
};

int running_thread() noexcept;
void freed(void* block) noexcept;

class engine {
 public:
  search choices;
  memory_model memory;
  limits limit;
  sharing shared;
  bool use_sharing = false;
  bool learnt = false;  // more sharing than was known

  ending execute(void (*body)(void*), void* argument, bool trace);
  const char* failure() const { return failure_; }
  std::uint64_t steps() const { return steps_; }
  std::uint64_t execution() const {
    return execution_;
  }  // which one this is; what it left behind in a global is old afterwards

  // --- called by the code under test, on a virtual thread
  [[noreturn]] void fail(const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));
  [[noreturn]] void fail_object(const char* what, const object&, where) noexcept;
  enum class access : std::uint8_t { load, write, release, other };  // release: of an abstract lock
  // A switch point before an operation on this object.
  void point(const void* address, access, where) noexcept;
  void spawn(void (*run)(void*), void* argument) noexcept;
  void join_all() noexcept;
  void when_quiet(int rank) noexcept;
  void relax(where) noexcept;
  bool sleep(const void* word, bool has_deadline) noexcept;  // true: the deadline ended it
  int wake(const void* word, int count) noexcept;
  bool wait_for_lock(const void* word, bool has_deadline, where) noexcept;  // false: the deadline ended it
  void glue_next() noexcept;
  object& atomic_object(const void* address, word initial, bool write, where) noexcept;
  int pick(int n) noexcept { return choices.choose(n); }
  // One of options(), which begin with the newest store.
  place_option pick_store() noexcept;
  int current() const { return current_; }
  where last_step() const { return threads_[current_].at; }
  host_vector<place_option>& options() { return options_; }
  bool may_fail_weakly() noexcept;
  void at_point(const char* name) { threads_[current_].point = name; }

  bool tracing() const { return trace_; }
  void trace(const char* what, const object*, where, const char* format, ...) noexcept
      __attribute__((format(printf, 5, 6)));

 private:
  enum class status : std::uint8_t { unused, ready, sleeping, locking, joining, when_quiet, finished };
  enum class resumed_by : std::uint8_t { wake, timeout, nothing };
  struct virtual_thread {
    boost::context::detail::fcontext_t context = nullptr;
    void (*run)(void*) = nullptr;
    void* argument = nullptr;
    status state = status::unused;
    resumed_by how = resumed_by::wake;
    bool has_deadline = false;
    int rank = 0;  // when_quiet
    bool goes_on = false;  // the coming point was already decided (after a wake or a yield)
    bool glued = false;  // the coming point needs no switch: see glue_next()
    int primed_by = -1;  // runs up to its first point inside spawn()
    const void* sleeps_on = nullptr;
    where at{};
    const char* point = nullptr;  // mutation point of the coming operation
    void* exceptions[2] = {};  // __cxa_eh_globals
    // Fairness between yields (Musuvathi and Qadeer 2008): threads that could have run since the last yield of this one and
    // did not go first.
    bool yielded = false;  // nobody else has made a step since
    std::uint8_t goes_first = 0;
    std::uint8_t could_run = 0;
    std::uint8_t has_run = 0;
  };

  static void entry(boost::context::detail::transfer_t) noexcept;
  [[noreturn]] void finish_thread() noexcept;
  [[noreturn]] void leave(ending) noexcept;
  void switch_to(int thread) noexcept;
  // Chooses who goes on; returns when the caller is chosen. `private_step`: the caller itself, without trying others.
  void run_somebody(bool private_step = false) noexcept;
  std::uint8_t able();  // could go on without anybody's help
  std::uint8_t fair(std::uint8_t able) const;
  void stepped() noexcept;
  [[noreturn]] void deadlock(std::uint8_t sleepers_with_deadline) noexcept;
  word state_hash(int current) const;

  virtual_thread threads_[max_threads];
  int thread_count_ = 0;
  int current_ = -1;
  boost::context::detail::fcontext_t controller_ = nullptr;
  ending ending_ = ending::completed;
  int preemptions_left_ = 0, old_reads_left_ = 0;
  int spurious_left_ = 0, weak_left_ = 0, early_left_ = 0;
  std::uint64_t steps_ = 0, execution_ = 0;
  std::uint32_t steps_here_ = 0;
  bool trace_ = false;
  host_vector<place_option> options_;
  char failure_[1024] = {};
};

extern engine the_engine;

}  // namespace explore
