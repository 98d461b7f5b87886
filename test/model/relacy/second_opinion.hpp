// Runs one relacy test: all schedules within the bound of context switches. WEFT_MODEL_LONG in the environment adds one to it.
#pragma once

#pragma GCC system_header  // relacy's headers are not ours to warn about
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <relacy/relacy.hpp>

// WEFT_RELACY_TRACE in the environment: relacy's own report, with the history of the failing execution, on stdout.
template <class Test>
bool second_opinion(const char* name, unsigned bound) {
  struct : std::streambuf {  // allocates nothing: relacy brings its own operator new
    int overflow(int c) override { return c; }
  } nowhere;
  std::ostream silent(&nowhere);
  rl::test_params p;
  p.search_type = rl::sched_bound;
  if (std::getenv("WEFT_MODEL_LONG") != nullptr) ++bound;
  p.context_bound = bound;
  p.execution_depth_limit = 500;
  p.output_stream = p.progress_stream = std::getenv("WEFT_RELACY_TRACE") != nullptr ? &std::cout : &silent;
  const bool as_expected = rl::simulate<Test>(p);
  std::printf("%s %-44s bound %u, %llu executions, %s\n", as_expected ? "ok  " : "FAIL", name, bound,
              static_cast<unsigned long long>(p.stop_iteration), rl::test_result_str(p.test_result));
  std::fflush(stdout);
  return as_expected;
}
