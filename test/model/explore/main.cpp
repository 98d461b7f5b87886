// The command line of every model test program.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "explore/engine.hpp"
#include "explore/explore.hpp"
#include "explore/mutation.hpp"

namespace explore {

std::string replay(const test&, const std::string&);

namespace {

test* first_test = nullptr;
test** last_test = &first_test;
mutation_point* first_point = nullptr;
const test* running = nullptr;

const char* const usage =
    R"(usage: %s [--list] [--points] [--filter=TEXT] [--test=NAME] [--preemptions=N] [--old-reads=N] [--at-most=N]
          [--random=N] [--replay='TEST;BOUND;BOUND;CHOICES'] [--stop-at-first] [--reached]
  --points         the mutation points compiled in, with their kind; WEFT_MUTATION=name makes one active
  --reached        after each test a line `reached TEST SECONDS POINT...`: the points that it came to
  --preemptions=N  another bound than the tests ask for (-1: none)
  --old-reads=N    likewise for loads that do not return the newest store
  --at-most=N      larger bounds are cut down to N, random schedules to N tenths, except where the test says what must be seen
  --random=N       N random schedules per test instead of all
  --replay         one execution again, with its trace; WEFT_REPLAY in the environment does the same
)";

// A crash of the code under test: say which schedule it was, then die.
void crashed(int) {
  const char text[] = "\ncrashed (SIGSEGV); replay with --replay='";
  if (write(1, text, sizeof text - 1) < 0) _exit(1);
  if (running != nullptr && write(1, running->name, std::strlen(running->name)) < 0) _exit(1);
  char bound[32];
  const int n = std::snprintf(bound, sizeof bound, ";%d;%d;", the_engine.limit.preemptions, the_engine.limit.old_reads);
  if (write(1, bound, static_cast<std::size_t>(n)) < 0) _exit(1);
  the_engine.choices.print_replay(1);
  if (write(1, "'\n", 2) < 0) _exit(1);
  _exit(1);
}

void catch_crashes() {
  static char stack[64 * 1024];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action{};
  action.sa_handler = &crashed;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

void print_report(const test& t, const report& r, const options& o) {
  const double rate = r.seconds > 0 ? static_cast<double>(r.executions) / r.seconds : 0;
  char bound[32];
  if (o.random != 0)
    std::snprintf(bound, sizeof bound, "random");
  else {
    const std::string p = o.preemptions < 0 ? "-" : std::to_string(o.preemptions);
    const std::string r_ = o.old_reads < 0 ? "-" : std::to_string(o.old_reads);
    std::snprintf(bound, sizeof bound, "bounds %s/%s", p.c_str(), r_.c_str());
  }
  std::printf("%s %-44s %-10s %9llu executions (%llu pruned), %llu states, %.2f s, %.0f/s\n",
              r.out_of_time ? "part"
              : r.ok        ? "ok  "
                            : "FAIL",
              t.name, bound, static_cast<unsigned long long>(r.executions), static_cast<unsigned long long>(r.pruned),
              static_cast<unsigned long long>(r.states), r.seconds, rate);
}

void print_failure(const test& t, const report& r) {
  std::printf("  %s\n", r.failure.c_str());
  if (r.replay.empty()) return;
  std::printf("  trace (value of: the thread that stored it; \"newer\": stores it did not see yet):\n");
  const std::string again = replay(t, r.replay);
  if (again != r.failure) std::printf("  the replay differs: \"%s\"; is the test deterministic?\n", again.c_str());
  std::printf("  replay with --replay='%s;%s'\n", t.name, r.replay.c_str());
}

void print_reached(const test& t, const report& r) {
  std::printf("reached %s %.3f", t.name, r.seconds);
  for (mutation_point* p = first_point; p != nullptr; p = p->next)
    if (std::exchange(p->reached, false)) std::printf(" %s", p->name);
  std::printf("\n");
}

int at_most(int n, int bound) { return bound < 0 || bound > n ? n : bound; }

// The same test with larger bounds, one after the other, until the time is up; for random ones ten times as many.
report deeper(const test& t, options o, double seconds) {
  report r;
  r.ok = true;
  const bool has_bounds = o.random != 0 || o.preemptions >= 0 || o.old_reads >= 0;
  if (o.outcomes != nullptr || o.fails != nullptr || !has_bounds) return r;
  o.max_executions = UINT64_MAX;
  for (o.seconds = seconds; o.seconds > 0 && r.ok && !r.out_of_time; o.seconds -= r.seconds) {
    if (o.random != 0) o.random *= 10;
    if (o.preemptions >= 0) ++o.preemptions;
    if (o.old_reads >= 0) ++o.old_reads;
    r = run(t.name, o, t.body);
    print_report(t, r, o);
    if (o.random == 0 && o.preemptions > 12) break;
  }
  return r;
}

}  // namespace

test::test(const char* name_, void (*body_)(), const options& o) : name(name_), body(body_), how(o) {
  *last_test = this;
  last_test = &next;
}

mutation_point::mutation_point(const char* name_, const char* kind_) noexcept
    : name(name_),
      kind(kind_),
      next(first_point) {
  const char* wanted = std::getenv("WEFT_MUTATION");
  active = wanted != nullptr && std::strcmp(wanted, name_) == 0;
  first_point = this;
}

int main_of_tests(int argc, char** argv) {
  const char* filter = nullptr;
  const char* only = nullptr;
  int cut = -1;
  const char* again = std::getenv("WEFT_REPLAY");
  bool stop = false, list_reached = false;
  options change;
  bool bound = false, old_bound = false;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a == "--list") {
      for (test* t = first_test; t != nullptr; t = t->next) std::printf("%s\n", t->name);
      return 0;
    }
    if (a == "--points") {
      for (mutation_point* p = first_point; p != nullptr; p = p->next) std::printf("%s %s\n", p->name, p->kind);
      return 0;
    }
    if (a.starts_with("--filter="))
      filter = argv[i] + 9;
    else if (a.starts_with("--test="))
      only = argv[i] + 7;
    else if (a.starts_with("--at-most="))
      cut = std::atoi(argv[i] + 10);
    else if (a.starts_with("--preemptions="))
      change.preemptions = std::atoi(argv[i] + 14), bound = true;
    else if (a.starts_with("--old-reads="))
      change.old_reads = std::atoi(argv[i] + 12), old_bound = true;
    else if (a.starts_with("--random="))
      change.random = std::strtoull(argv[i] + 9, nullptr, 10);
    else if (a.starts_with("--replay="))
      again = argv[i] + 9;
    else if (a == "--stop-at-first")
      stop = true;
    else if (a == "--reached")
      list_reached = true;
    else {
      std::printf(usage, argv[0]);
      return 2;
    }
  }
  catch_crashes();
  if (again != nullptr) {
    const std::string text = again;
    const std::size_t semicolon = text.find(';');
    for (test* t = first_test; t != nullptr; t = t->next)
      if (text.compare(0, semicolon, t->name) == 0 && semicolon != std::string::npos) {
        running = t;
        const std::string failure = replay(*t, text.substr(semicolon + 1));
        std::printf("%s\n", failure.empty() ? "no failure" : failure.c_str());
        return failure.empty() ? 0 : 1;
      }
    std::printf("no test of this program in \"%s\"\n", again);
    return 2;
  }
  const char* long_mode = std::getenv("WEFT_MODEL_LONG");
  const double long_seconds = long_mode == nullptr ? 0 : std::atof(long_mode);
  int passed = 0, failed = 0;
  for (test* t = first_test; t != nullptr; t = t->next) {
    if (filter != nullptr && std::strstr(t->name, filter) == nullptr) continue;
    if (only != nullptr && std::strcmp(t->name, only) != 0) continue;
    options o = t->how;
    if (bound) o.preemptions = change.preemptions;
    if (old_bound) o.old_reads = change.old_reads;
    if (cut >= 0 && o.outcomes == nullptr && o.fails == nullptr) {
      o.preemptions = at_most(cut, o.preemptions);
      o.old_reads = at_most(cut, o.old_reads);
      if (o.random != 0) o.random = std::max<std::uint64_t>(o.random * static_cast<unsigned>(cut) / 10, 2);
    }
    if (change.random != 0 && o.outcomes == nullptr) o.random = change.random;
    running = t;
    report r = run(t->name, o, t->body);
    print_report(*t, r, o);
    if (list_reached) print_reached(*t, r);
    if (r.ok && long_seconds > 0) r = deeper(*t, o, long_seconds);
    std::fflush(stdout);
    ++(r.ok ? passed : failed);
    if (!r.ok) {
      print_failure(*t, r);
      if (stop) break;
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed != 0 ? 0 : 1;
}

}  // namespace explore

int main(int argc, char** argv) { return explore::main_of_tests(argc, argv); }
