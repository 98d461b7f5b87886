// Starting a child process with posix_spawn, which makes no copy of the parent: it takes the same time in a large process
// as in a small one.
#pragma once

#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "io/child.hpp"
#include <weft/detail/fd_handle.hpp>
#include <weft/process_options.hpp>

namespace weft::inline v1::io {

struct started_process {
  std::unique_ptr<child> who;
  fd_handle pipes[3];  // the parent's ends, of the streams that are pipes
};

// Blocks until the program runs in the child, or cannot. If it sets `why`, there is no child.
[[nodiscard]] started_process start_process(const kernel_calls& calls, const std::vector<std::string>& arguments,
                                            const process_options& o, std::error_code& why);

}  // namespace weft::inline v1::io
