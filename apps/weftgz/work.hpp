// The whole run: each file is looked at, compressed or decompressed, and put in its place.
#pragma once

#include <cstddef>

#include <weftgz/run_state.hpp>

namespace weftgz {

// Does what the command line says. What goes wrong with a file is reported, and the next one follows. Files that become
// files are worked on `at_a_time`; what goes to stdout has an order. Throws nothing but cancellation.
void do_all(run_state& run, std::size_t at_a_time);

}  // namespace weftgz
