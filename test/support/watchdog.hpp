// A test that hangs says what it hangs on.
//
//     support::watchdog guard(60s, "a thousand tasks end");
//     support::watched_runtime rt({.workers = 4});     // a weft::runtime that the watchdog knows
//
// When the time is up and the guard still lives, every unfinished task of every known runtime and the state of every worker is
// printed, and the process aborts.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

#include <weft/weft.hpp>

#include "sched/runtime_access.hpp"

namespace support {

// Makes a runtime known to watchdogs for as long as this lives.
class watched {
 public:
  explicit watched(weft::runtime& r);
  explicit watched(weft::sched::scheduler& s);
  ~watched();
  watched(const watched&) = delete;
  watched& operator=(const watched&) = delete;

 private:
  weft::sched::scheduler* scheduler_;
};

// A runtime that watchdogs know, until the last of its tasks has ended in the destructor.
class watched_runtime {
 public:
  explicit watched_runtime(const weft::runtime_options& options = {});
  // Exactly so many, even while some are stuck.
  explicit watched_runtime(std::size_t workers)
      : watched_runtime(weft::runtime_options{.workers = workers, .elastic = false}) {}
  ~watched_runtime();
  watched_runtime(const watched_runtime&) = delete;
  watched_runtime& operator=(const watched_runtime&) = delete;

  weft::runtime& operator*() noexcept { return runtime_; }
  weft::runtime* operator->() noexcept { return &runtime_; }
  operator weft::runtime&() noexcept { return runtime_; }
  [[nodiscard]] weft::sched::scheduler& core() noexcept { return weft::sched::core_of(runtime_); }

 private:
  weft::runtime runtime_;
};

// Prints what is known of all of them: unfinished tasks (name, id, phase, why and where they wait) and worker states.
void dump_runtimes(std::FILE* to);

class watchdog {
 public:
  explicit watchdog(std::chrono::seconds limit, std::string what = "the test");
  ~watchdog();
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;

 private:
  void keep_watch(std::chrono::seconds limit);

  const std::string what_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace support
