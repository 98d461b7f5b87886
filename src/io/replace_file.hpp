// New contents for a file, as a whole.
//
// They are written to a temporary file in the same directory, which is synced and then renamed. Each step is made off
// the worker, and there is a cancellation point before each of them.
//
// io.RF1. The path leads to the old contents until it leads to all of the new ones.
//     test io/a_replaced_file_*
// io.RF2. Whatever step fails, and wherever the task is cancelled, neither a temporary file nor a descriptor is left.
//     test io/a_failed_replacement_*, test io/a_cancelled_replacement_*
#pragma once

#include <filesystem>
#include <source_location>

#include "io/file_error.hpp"
#include "io/kernel.hpp"
#include <weft/fs/contents.hpp>

namespace weft::inline v1::io {

[[nodiscard]] file_failure replace_file(const kernel_calls& calls, std::filesystem::path path, const_buffer contents,
                                        const fs::write_options& how, std::source_location where);

}  // namespace weft::inline v1::io
