// What could be done about a deadlock, in one sentence for each kind that is recognized.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "observe/channel_holders.hpp"
#include "observe/wait_graph.hpp"

namespace weft::inline v1::observe {

// A channel for which tasks wait, and who has the ends that they wait for.
struct channel_finding {
  std::size_t waiter;  // the first of them
  const object_view* channel;
  bool receives;  // they wait for a writer; else they wait for a reader
  std::vector<std::size_t> others = {};  // tasks that probably have ends and do not wait in this way themselves
  bool is_certain = false;  // the waiter has the only end that it waits for
  bool in_variables = false;

  [[nodiscard]] std::size_t ends() const noexcept { return receives ? channel->writers : channel->readers; }
};
// For each channel that tasks wait for in a plain send or receive; at most `most`.
[[nodiscard]] std::vector<channel_finding> look_at_channels(const wait_graph& in, std::size_t most = 8);

// Each different hint once, the most telling one first. `cycles` are those of the graph.
[[nodiscard]] std::vector<std::string> hints_for(const wait_graph& in,
                                                 const std::vector<std::vector<std::size_t>>& cycles,
                                                 const std::vector<channel_finding>& channels);

}  // namespace weft::inline v1::observe
