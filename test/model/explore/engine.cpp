#include "explore/engine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>
#include <cxxabi.h>

#include "explore/arena.hpp"

namespace explore {

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

bool exploring = false;
engine the_engine;

int running_thread() noexcept { return the_engine.current(); }
std::uint64_t this_execution() noexcept { return the_engine.execution(); }

// ---- an execution

ending engine::execute(void (*body)(void*), void* argument, bool trace) {
  ++execution_;
  arena::reset();
  memory.reset();
  choices.begin_execution();
  for (virtual_thread& t : threads_) t = virtual_thread{};
  preemptions_left_ = limit.preemptions;
  old_reads_left_ = limit.old_reads;
  spurious_left_ = limit.spurious;
  weak_left_ = limit.weak_failures;
  early_left_ = limit.early_timeouts;
  steps_here_ = 0;
  trace_ = trace;
  thread_count_ = 1;
  memory.threads[0].now.clock.at[0] = 1;
  virtual_thread& first = threads_[0];
  first.run = body;
  first.argument = argument;
  first.state = status::ready;
  first.context = make_fcontext(arena::stack(0) + arena::stack_size, arena::stack_size, &entry);
  current_ = 0;
  void* globals = abi::__cxa_get_globals();
  void* saved[2];
  std::memcpy(saved, globals, sizeof saved);
  exploring = true;
  jump_fcontext(first.context, nullptr);
  exploring = false;
  std::memcpy(globals, saved, sizeof saved);  // an abandoned thread may have been inside a handler
  current_ = -1;
  return ending_;
}

void engine::entry(transfer_t from) noexcept {
  engine& e = the_engine;
  if (from.data == nullptr)
    e.controller_ = from.fctx;
  else
    static_cast<virtual_thread*>(from.data)->context = from.fctx;
  virtual_thread& me = e.threads_[e.current_];
  me.run(me.argument);
  e.finish_thread();
}

void engine::finish_thread() noexcept {
  virtual_thread& me = threads_[current_];
  if (current_ == 0) {
    join_all();
    const void* block = nullptr;
    std::size_t bytes = 0;
    if (std::size_t n = arena::alive(block, bytes); n != 0)
      fail("leak: %zu block(s) not freed at the end of the execution, one of %zu bytes at %p", n, bytes, block);
    leave(ending::completed);
  }
  if (trace_) trace("ends", nullptr, me.at, "%s", "");
  me.state = status::finished;
  if (me.primed_by >= 0)
    switch_to(std::exchange(me.primed_by, -1));
  else
    run_somebody();
  __builtin_unreachable();
}

void engine::leave(ending how) noexcept {
  ending_ = how;
  jump_fcontext(controller_, nullptr);
  __builtin_unreachable();
}

void engine::switch_to(int next) noexcept {
  virtual_thread& me = threads_[current_];
  current_ = next;
  void* globals = abi::__cxa_get_globals();
  std::memcpy(me.exceptions, globals, sizeof me.exceptions);
  std::memcpy(globals, threads_[next].exceptions, sizeof me.exceptions);
  transfer_t from = jump_fcontext(threads_[next].context, &me);
  static_cast<virtual_thread*>(from.data)->context = from.fctx;
}

void engine::spawn(void (*run)(void*), void* argument) noexcept {
  if (thread_count_ == max_threads) fail("too many threads: at most %d", max_threads - 1);
  const int t = thread_count_++;
  virtual_thread& child = threads_[t];
  child.run = run;
  child.argument = argument;
  child.state = status::ready;
  child.primed_by = current_;
  child.context = make_fcontext(arena::stack(t) + arena::stack_size, arena::stack_size, &entry);
  memory.fork(current_, t);
  switch_to(t);
}

void engine::join_all() noexcept {
  virtual_thread& me = threads_[current_];
  me.state = status::joining;
  run_somebody();
  me.state = status::ready;
  me.goes_on = false;
  for (int t = 0; t < thread_count_; ++t)
    if (t != current_) memory.join(current_, t);
}

void engine::when_quiet(int rank) noexcept {
  virtual_thread& me = threads_[current_];
  me.state = status::when_quiet;
  me.rank = rank;
  if (me.primed_by >= 0) {
    switch_to(std::exchange(me.primed_by, -1));
    stepped();
  } else {
    run_somebody();
  }
  // Those of the same rank go on together.
  for (virtual_thread& t : threads_)
    if (t.state == status::when_quiet && t.rank == rank) t.state = status::ready;
  me.state = status::ready;
  memory.event(current_, 0x901e7);
}

// ---- who goes on

std::uint8_t engine::able() {
  unsigned mask = 0;
  bool all_finished = true;
  for (int t = 0; t < thread_count_; ++t) {
    const virtual_thread& v = threads_[t];
    if (v.state == status::ready) mask |= 1u << t;
    if (v.state == status::locking) {
      const object* o = memory.find(v.sleeps_on);
      if (o == nullptr || !o->alive || o->order.back().value == 0) mask |= 1u << t;
    }
    if (v.state != status::finished && v.state != status::joining) all_finished = false;
  }
  if (mask == 0) {
    int lowest = INT32_MAX;
    for (int t = 0; t < thread_count_; ++t)
      if (threads_[t].state == status::when_quiet) lowest = std::min(lowest, threads_[t].rank);
    for (int t = 0; t < thread_count_; ++t)
      if (threads_[t].state == status::when_quiet && threads_[t].rank == lowest) mask |= 1u << t;
  }
  if (all_finished)
    for (int t = 0; t < thread_count_; ++t)
      if (threads_[t].state == status::joining) mask |= 1u << t;
  return static_cast<std::uint8_t>(mask);
}

std::uint8_t engine::fair(std::uint8_t able) const {
  unsigned mask = 0;
  for (int t = 0; t < thread_count_; ++t)
    if ((able >> t & 1) != 0 && !threads_[t].yielded && (threads_[t].goes_first & able) == 0) mask |= 1u << t;
  return static_cast<std::uint8_t>(mask);
}

word engine::state_hash(int current) const {
  word h = memory.hash();
  for (int t = 0; t < thread_count_; ++t) {
    const virtual_thread& v = threads_[t];
    word s = mix(memory.threads[t].history, static_cast<word>(t));
    s = mix(s, static_cast<word>(v.state) | static_cast<word>(v.how) << 4 | word{v.yielded} << 8 |
                   word{v.goes_on} << 9 | word{v.goes_first} << 16 | word{v.could_run} << 24 | word{v.has_run} << 32 |
                   word{memory.threads[t].past} << 40);
    h += s;
  }
  return mix(h, static_cast<word>(current + 1) | static_cast<word>(spurious_left_) << 8 |
                    static_cast<word>(weak_left_) << 16 | static_cast<word>(early_left_) << 24);
}

void engine::run_somebody(bool private_step) noexcept {
  const int me = current_;
  const std::uint8_t ready = able();
  unsigned late = 0, spurious = 0;
  for (int t = 0; t < thread_count_; ++t) {
    const virtual_thread& v = threads_[t];
    const bool locked_out = v.state == status::locking && (ready >> t & 1) == 0;
    if (v.state != status::sleeping && !locked_out) continue;
    if (v.has_deadline && (early_left_ > 0 || ready == 0)) late |= 1u << t;
    if (!locked_out && !v.has_deadline && spurious_left_ > 0 && ready != 0) spurious |= 1u << t;
  }
  if (ready == 0 && (late == 0 || !limit.timeout_rescues)) deadlock(static_cast<std::uint8_t>(late));

  std::uint8_t may = fair(ready);
  if (may == 0) {
    may = ready;
    for (virtual_thread& v : threads_) v.yielded = false;
  }
  int list[2 * max_threads];
  int n = 0;
  const bool me_may = (may >> me & 1) != 0;
  if (me_may) list[n++] = me;
  const bool bounded = limit.preemptions >= 0 && choices.how() != mode::random && choices.how() != mode::pct;
  if (!me_may || !bounded || preemptions_left_ > 0)
    for (int t = 0; t < thread_count_; ++t)
      if (!(t == me && me_may) && ((may | late | spurious) >> t & 1) != 0)
        list[n++] = t;  // a sleeper's own deadline too

  if (private_step && me_may) {
    choices.take_first(n);
    stepped();
    return;
  }
  if (choices.in_new_territory() && choices.known(state_hash(me_may ? me : -1), bounded ? preemptions_left_ : 0,
                                                  limit.old_reads < 0 ? 0 : old_reads_left_))
    leave(ending::known_state);
  const int next = list[choices.choose_thread(list, n, me_may)];
  if (me_may && next != me) --preemptions_left_;
  virtual_thread& v = threads_[next];
  if (v.state == status::sleeping || (late >> next & 1) != 0) {
    v.state = status::ready;
    v.how = (late >> next & 1) != 0 ? resumed_by::timeout : resumed_by::nothing;
    if (v.how == resumed_by::nothing) --spurious_left_;
    if (v.how == resumed_by::timeout && ready != 0) --early_left_;
  }
  if (next != me) switch_to(next);
  stepped();
}

// The running thread makes a step.
void engine::stepped() noexcept {
  const unsigned bit = 1u << current_;
  const std::uint8_t now = able();
  for (int t = 0; t < thread_count_; ++t) {
    virtual_thread& v = threads_[t];
    if (t != current_) v.yielded = false;
    v.goes_first &= static_cast<std::uint8_t>(~bit);
    if (v.could_run == 0) continue;  // has never yielded
    v.has_run |= static_cast<std::uint8_t>(bit);
    v.could_run &= now | static_cast<std::uint8_t>(1u << t);
  }
}

void engine::point(const void* address, access how, where w) noexcept {
  virtual_thread& me = threads_[current_];
  me.at = w;
  const bool glued = std::exchange(me.glued, false) && how != access::other;
  ++steps_;
  if (++steps_here_ > limit.steps) fail("livelock: %u steps and no end", limit.steps);
  if (me.primed_by >= 0) {
    switch_to(std::exchange(me.primed_by, -1));
    stepped();
  } else if (me.goes_on) {
    me.goes_on = false;
  } else if (thread_count_ > 1) {
    bool private_step = glued || (use_sharing && how == access::release);
    if (use_sharing && how != access::other && !private_step)
      if (const object* o = memory.find(address))
        private_step = shared.needs_no_switch(o->uid, current_, how == access::load);
    run_somebody(private_step);
  }
  memory.event(current_, 0x57e9);  // how far the thread has come is part of the state
}

void engine::relax(where w) noexcept {
  virtual_thread& me = threads_[current_];
  me.at = w;
  ++steps_;
  if (++steps_here_ > limit.steps) fail("livelock: %u steps and no end", limit.steps);
  me.glued = false;
  memory.threads[current_].dull = memory.limits.dull;
  memory.event(current_, 0x7e1a);
  if (thread_count_ == 1) return;
  if (trace_) trace("yield", nullptr, w, "%s", "");
  if (me.primed_by >= 0) {
    switch_to(std::exchange(me.primed_by, -1));
    stepped();
  }
  const unsigned self = 1u << current_;
  me.goes_first |= static_cast<std::uint8_t>(me.could_run & ~me.has_run & ~self);
  me.could_run = static_cast<std::uint8_t>(able() | self);
  me.has_run = 0;
  me.yielded = true;
  if (choices.how() == mode::pct) choices.lower_priority(current_);
  run_somebody();
  me.goes_on = true;  // a yield does nothing: with the operation after it, it is one step
}

bool engine::sleep(const void* word_address, bool has_deadline) noexcept {
  virtual_thread& me = threads_[current_];
  me.state = status::sleeping;
  me.sleeps_on = word_address;
  me.has_deadline = has_deadline;
  run_somebody();
  me.sleeps_on = nullptr;
  memory.event(current_, 0xf07e + static_cast<word>(me.how));
  // After a time-out others may act, in particular wake in vain, before this thread's next operation.
  me.goes_on = me.how == resumed_by::wake;
  if (trace_)
    trace(me.how == resumed_by::wake      ? "woken"
          : me.how == resumed_by::timeout ? "times out"
                                          : "returns for no reason",
          nullptr, me.at, "%s", "");
  return me.how == resumed_by::timeout;
}

int engine::wake(const void* word_address, int count) noexcept {
  int sleepers[max_threads];
  int n = 0;
  for (int t = 0; t < thread_count_; ++t)
    if (threads_[t].state == status::sleeping && threads_[t].sleeps_on == word_address) sleepers[n++] = t;
  int woken = 0;
  while (n > 0 && woken < count) {
    const int i = count - woken >= n ? 0 : choices.choose(n);  // the kernel promises no order
    virtual_thread& v = threads_[sleepers[i]];
    v.state = status::ready;
    v.how = resumed_by::wake;
    v.sleeps_on = nullptr;
    sleepers[i] = sleepers[--n];
    ++woken;
  }
  return woken;
}

bool engine::wait_for_lock(const void* word_address, bool has_deadline, where w) noexcept {
  virtual_thread& me = threads_[current_];
  me.at = w;
  ++steps_;
  if (++steps_here_ > limit.steps) fail("livelock: %u steps and no end", limit.steps);
  me.state = status::locking;
  me.sleeps_on = word_address;
  me.has_deadline = has_deadline;
  me.how = resumed_by::wake;
  me.glued = false;  // between two locks others must be tried, or deadlocks would not be found
  const object* o = memory.find(word_address);
  if (me.primed_by >= 0) {
    switch_to(std::exchange(me.primed_by, -1));
    stepped();
  } else if (me.goes_on && (able() >> current_ & 1) != 0) {
    me.goes_on = false;
  } else if (thread_count_ > 1 || (able() >> current_ & 1) == 0) {
    me.goes_on = false;
    run_somebody(use_sharing && o != nullptr && shared.needs_no_switch(o->uid, current_, false));
  }
  me.state = status::ready;
  me.sleeps_on = nullptr;
  memory.event(current_, 0x10c4 + static_cast<word>(me.how));
  if (me.how != resumed_by::timeout) return true;
  if (trace_) trace("times out", nullptr, w, "%s", "");
  return false;
}

// What others do between taking an abstract lock and the next step, or between the step before its release and the release,
// they can as well do before the one and after the other: nobody but the holder may touch the lock meanwhile. Only if the next
// step cannot block: a thread that waits between two locks is what a deadlock is made of.
void engine::glue_next() noexcept { threads_[current_].glued = use_sharing; }

place_option engine::pick_store() noexcept {
  if (old_reads_left_ == 0) return options_[0];
  const int i = choices.choose(static_cast<int>(options_.size()));
  if (i != 0 && old_reads_left_ > 0) --old_reads_left_;
  return options_[static_cast<std::size_t>(i)];
}

bool engine::may_fail_weakly() noexcept {
  if (weak_left_ == 0 || choices.choose(2) == 0) return false;
  --weak_left_;
  return true;
}

// ---- what went wrong

void engine::deadlock(std::uint8_t late) noexcept {
  char text[600];
  int used = 0;
  for (int t = 0; t < thread_count_; ++t) {
    const virtual_thread& v = threads_[t];
    if (v.state == status::locking)
      used += std::snprintf(text + used, sizeof text - static_cast<std::size_t>(used),
                            "\n    T%d waits for a lock at %s:%u", t, v.at.file_name(), v.at.line());
    if (v.state != status::sleeping) continue;
    used +=
        std::snprintf(text + used, sizeof text - static_cast<std::size_t>(used), "\n    T%d in futex_wait%s at %s:%u",
                      t, (late >> t & 1) != 0 ? " (with a deadline)" : "", v.at.file_name(), v.at.line());
    if (used > 500) break;
  }
  text[used] = 0;
  fail("deadlock (lost wake-up): every live thread sleeps%s", text);
}

void engine::fail(const char* format, ...) noexcept {
  va_list args;
  va_start(args, format);
  std::vsnprintf(failure_, sizeof failure_, format, args);
  va_end(args);
  if (trace_) std::printf("  T%d  *** %s\n", current_, failure_);
  leave(ending::failed);
}

void engine::fail_object(const char* what, const object& o, where w) noexcept {
  if (w.line() == 0) w = threads_[current_].at;
  char others[600];
  int used = 0;
  const vector_clock& now = memory.threads[current_].now.clock;
  for (int u = 0; u < max_threads; ++u)
    if (u != current_ && o.touched[u].clock > now.at[u]) {
      const bool wrote = o.wrote[u].clock > now.at[u];
      const where& at = wrote ? o.wrote[u].at : o.touched[u].at;
      used +=
          std::snprintf(others + used, sizeof others - static_cast<std::size_t>(used),
                        "\n    T%d %s it at or after %s:%u", u, wrote ? "wrote" : "used", at.file_name(), at.line());
      if (used > 500) break;
    }
  others[used] = 0;
  fail("%s: %s#%u at %p\n    T%d at or after %s:%u%s", what, o.name != nullptr ? o.name : "", o.number, o.address,
       current_, w.file_name(), w.line(), others);
}

object& engine::atomic_object(const void* address, word initial, bool write, where w) noexcept {
  object* o = memory.find(address);
  if (o == nullptr) {
    if (arena::owns(address) || arena::owns_stack(address))
      fail("use of an atomic at %p that was never constructed, at %s:%u", address, w.file_name(), w.line());
    o = &memory.made_before(address, initial, false);
  }
  if (const char* wrong = memory.check_atomic(current_, *o, w)) fail_object(wrong, *o, w);
  if (use_sharing && thread_count_ > 1 && (current_ != 0 || able() != 1) && shared.note(o->uid, current_, write))
    learnt = true;
  return *o;
}

void engine::trace(const char* what, const object* o, where w, const char* format, ...) noexcept {
  char detail[200];
  va_list args;
  va_start(args, format);
  std::vsnprintf(detail, sizeof detail, format, args);
  va_end(args);
  char name[64] = "";
  if (o != nullptr) std::snprintf(name, sizeof name, "%s#%u", o->name != nullptr ? o->name : "", o->number);
  const bool after = w.line() == 0;  // an access that does not know its line
  if (after) w = threads_[current_].at;
  const char* file = std::strrchr(w.file_name(), '/');
  file = file == nullptr ? w.file_name() : file + 1;
  const char* point = std::exchange(threads_[current_].point, nullptr);
  std::printf("  %4u T%d %-10s %-14s %-34s %s%s:%u%s%s\n", steps_here_, current_, what, name, detail,
              after ? "after " : "", file, w.line(), point != nullptr ? "  @" : "", point != nullptr ? point : "");
}

}  // namespace explore
