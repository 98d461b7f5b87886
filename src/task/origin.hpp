// Where a record comes from: what it still needs of its runtime after the runtime has gone.
//
// A handle may outlive its runtime, and so may the record behind it. The pool of the records lives as long as the last
// of them, and carries this for all of them without looking into it. It is written once, before the first record is
// handed out. After that any thread may read it.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string_view>

namespace weft::inline v1::task {

struct origin {
  // runtime_options::on_unhandled_exception; empty if the user has set none (sched/unhandled.cpp).
  std::function<void(std::string_view task, std::exception_ptr error)> on_unhandled;
  // The value of sched::fork_generation() when the runtime was made. In the child of a fork that function returns
  // another value: the runtime's threads and locks stayed in the parent, and nobody may wait for the task or give the
  // record back.
  std::uint32_t fork_generation = 0;
};

}  // namespace weft::inline v1::task
