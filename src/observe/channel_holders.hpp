// Which tasks have the ends of a channel, found by a search for the channel's address.
//
// How many ends there are is exact: the channel counts them. Who has them is not, because nothing keeps a list. So the
// stacks and the closures of all tasks are searched for the address, and the variables of the program. The search may find
// too much: a slot of a frame that is not used any more, or a copy that a function of Weft has of the address while it
// waits. It may find too little: an end in memory from the heap, or in a register. So what it finds is told as probable,
// with one exception: where the only writer and the only reader lie side by side, as make_channel returned them, and the
// address occurs nowhere else but on that stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "observe/wait_graph.hpp"

namespace weft::inline v1::observe {

struct channel_holders {
  std::vector<std::size_t> tasks = {};  // nodes of the graph that have the address
  bool in_variables = false;  // a global variable has it
  // The pair of the only two ends was found on the stack of the only task that has the address.
  bool is_certain = false;

  [[nodiscard]] bool only(std::size_t task) const noexcept {
    return !in_variables && tasks.size() == 1 && tasks.front() == task;
  }
};

// The tasks must not move meanwhile, which is known of a deadlock that was proved.
[[nodiscard]] channel_holders find_holders(const wait_graph& in, const object_view& channel);

}  // namespace weft::inline v1::observe
