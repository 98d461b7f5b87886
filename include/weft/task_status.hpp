// What a task does at this moment, for reports: whether it waits, for what, where and since when.
//
//   const weft::task_status s = task.ref().status();
//   log(to_string(s));                                 // #17 "upload" waits for semaphore at upload.cpp:88, 2.1 s
#pragma once

#include <chrono>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include <weft/detail/config.hpp>
#include <weft/join_handle.hpp>

namespace weft::inline v1 {

enum class task_state : std::uint8_t {
  ready,  // it could run, and waits for a worker or for its turn on a dispatcher
  running,
  blocking,  // inside blocking(): its thread may be blocked
  waiting,
  ended,
};

// A task that is looked at may continue meanwhile, so this is how it was at one moment.
struct task_status {
  std::uint64_t id = 0;
  std::string name = {};
  task_state state = task_state::ready;
  // What a waiting task waits for ("read", "mutex", "sleep"), where, and for how long already, to about 10 ms. Of a task
  // that is ready or running it is the wait before, and empty if there was none.
  std::string_view waits_for = {};
  std::source_location where = {};
  std::chrono::milliseconds age{0};
};

// The tasks of a runtime that have been spawned and have not ended. Others run meanwhile, so the list is not of one
// moment, and each entry is. Any thread may ask, also while the runtime shuts down:
//   if (!rt.shutdown_for(5s))
//     for (const weft::task_status& s : weft::live_tasks(rt)) log(to_string(s));
[[nodiscard]] WEFT_API std::vector<task_status> live_tasks(runtime& of);

// One line.
[[nodiscard]] WEFT_API std::string to_string(const task_status& s);

}  // namespace weft::inline v1
