// The loop over executions, and what the code under test calls besides atomics.
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/check.hpp"
#include "explore/engine.hpp"
#include "explore/explore.hpp"

namespace explore {
namespace {

std::set<std::string>* outcomes_here = nullptr;
double start = 0;  // of the running test

void call(void* body) { reinterpret_cast<void (*)()>(body)(); }

ending execute(void (*body)(), bool trace) {
  watching_slots = false;
  return the_engine.execute(&call, reinterpret_cast<void*>(body), trace);
}

void set_limits(const options& o) {
  limits& l = the_engine.limit;
  l.preemptions = o.preemptions;
  l.old_reads = o.old_reads;
  l.steps = o.steps;
  l.spurious = o.spurious;
  l.weak_failures = o.weak_failures;
  l.early_timeouts = o.early_timeouts;
  l.timeout_rescues = o.timeout_rescues;
  the_engine.memory.limits.history = o.history;
}

// Of the processor, not of the wall: a busy machine makes a search no longer.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void search_through(report& r, const options& o, void (*body)(), std::uint64_t at_most) {
  const std::uint64_t steps_before = the_engine.steps();
  for (;;) {
    const ending end = execute(body, false);
    ++r.executions;
    if (end == ending::known_state) ++r.pruned;
    if (std::exchange(the_engine.learnt, false) && end != ending::failed) {
      the_engine.choices.start_again();
      continue;
    }
    if (end == ending::failed) {
      r.failure = the_engine.failure();
      const bool bounded = the_engine.choices.how() == mode::exhaustive && o.preemptions >= 0;
      r.replay = (bounded ? std::to_string(o.preemptions) : "-") + ";" + std::to_string(o.old_reads) + ";" +
                 the_engine.choices.replay_string();
      break;
    }
    if (o.seconds > 0 && r.executions % 256 == 0 && cpu_seconds() - start > o.seconds) {
      r.out_of_time = true;
      break;
    }
    if (at_most != 0 && r.executions >= at_most) {
      r.complete = o.random != 0;
      break;
    }
    if (!the_engine.choices.next_execution()) {
      r.complete = true;
      break;
    }
  }
  r.steps += the_engine.steps() - steps_before;
  r.states += the_engine.choices.states();
}

std::string listed(const std::set<std::string>& all) {
  std::string text;
  for (const std::string& s : all) text += (text.empty() ? "" : " ") + s;
  return text;
}

std::set<std::string> split(const char* text) {
  std::set<std::string> all;
  while (*text != 0) {
    const std::size_t n = std::strcspn(text, " ");
    if (n != 0) all.emplace(text, n);
    text += n + (text[n] != 0);
  }
  return all;
}

}  // namespace

report run(const char*, const options& o, void (*body)()) {
  report r;
  set_limits(o);
  outcomes_here = &r.outcomes;
  start = cpu_seconds();
  if (o.random != 0) {
    the_engine.choices.start_random(mode::random, 1, 0);
    search_through(r, o, body, o.random / 2);
    if (r.failure.empty()) {
      the_engine.choices.start_random(mode::pct, 1, 3);
      search_through(r, o, body, o.random);
    }
  } else {
    the_engine.choices.start_exhaustive(true);
    the_engine.shared.forget();
    the_engine.use_sharing = true;
    search_through(r, o, body, o.max_executions);
    the_engine.use_sharing = false;
  }
  r.ok = r.failure.empty();
  if (r.ok && !r.complete && !r.out_of_time) {
    r.ok = false;
    r.failure = "not finished after " + std::to_string(r.executions) + " executions";
  }
  if (r.ok && o.outcomes != nullptr && r.outcomes != split(o.outcomes)) {
    r.ok = false;
    r.failure = "outcomes { " + listed(r.outcomes) + " } instead of { " + listed(split(o.outcomes)) + " }";
  }
  if (r.ok && (o.outcomes != nullptr || o.once_more_without_pruning)) {
    report all;
    outcomes_here = &all.outcomes;
    the_engine.choices.start_exhaustive(false);  // neither known states nor learnt sharing
    search_through(all, o, body, 0);
    if (all.outcomes != r.outcomes || !all.failure.empty()) {
      r.ok = false;
      r.failure = "without pruning: " + all.failure + " outcomes { " + listed(all.outcomes) + " } but with { " +
                  listed(r.outcomes) + " }";
    }
  }
  if (o.fails != nullptr) {
    const bool as_expected = r.failure.find(o.fails) != std::string::npos;
    if (!as_expected) r.failure = std::string("should fail with \"") + o.fails + "\"; " + r.failure;
    r.ok = as_expected;
  }
  r.seconds = cpu_seconds() - start;
  outcomes_here = nullptr;
  return r;
}

// "3;3;14:1,3:2": the preemption bound, the bound of old reads, then the choices (search.hpp).
std::string replay(const test& t, const std::string& text) {
  options o = t.how;
  const std::size_t first = text.find(';'), second = text.find(';', first + 1);
  if (second == std::string::npos) return "not a replay string";
  o.preemptions = text[0] == '-' ? -1 : std::atoi(text.c_str());
  o.old_reads = std::atoi(text.c_str() + first + 1);
  set_limits(o);
  the_engine.choices.start_replay(text.substr(second + 1));
  std::set<std::string> ignored;
  outcomes_here = &ignored;
  const ending end = execute(t.body, true);
  outcomes_here = nullptr;
  return end == ending::failed ? the_engine.failure() : "";
}

// --- inside a body

void spawn(void (*run)(void*), void* argument) { the_engine.spawn(run, argument); }
void join_all() { the_engine.join_all(); }
void when_quiet(int rank) { the_engine.when_quiet(rank); }
int choose(int n) {
  const int c = the_engine.pick(n);
  the_engine.memory.event(the_engine.current(), static_cast<word>(c) + 0xc405e);
  return c;
}

void outcome(const char* format, ...) {
  char text[200];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  outside o;
  if (outcomes_here != nullptr) outcomes_here->insert(text);
}

void name(const void* object_, const char* text) {
  if (object* o = the_engine.memory.find(object_)) o->name = text;
}

void failed_assert(const char* text, where w) {
  the_engine.fail("assertion failed: %s\n    at %s:%u", text, w.file_name(), w.line());
}

}  // namespace explore

// The twin of src/base/check.cpp: a failed check is a failed execution, with trace and replay string.
namespace weft::inline v1::base {

void fail(const char* what, std::source_location at) noexcept {
  if (explore::exploring) explore::the_engine.fail("check failed: %s\n    at %s:%u", what, at.file_name(), at.line());
  std::fprintf(stderr, "weft: %s\n", what);
  std::abort();
}

void failf(const char* format, ...) noexcept {
  char text[400];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (explore::exploring) explore::the_engine.fail("check failed: %s", text);
  std::fprintf(stderr, "weft: %s\n", text);
  std::abort();
}

}  // namespace weft::inline v1::base
