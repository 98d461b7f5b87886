// Files in blocking style: only the task waits, never its worker.
//
//   auto f = weft::fs::file::open("data", {.write = true, .create = true});
//   f.write_all_at("hello", 0);
//   std::string text = weft::fs::read_file("/proc/self/status");
//   weft::fs::write_file("settings", text);                        // the old contents or the new ones, never a part
//   for (const weft::fs::entry& e : weft::fs::walk("src")) …
//
// Reads of what is in the page cache are made at once, on the worker. Everything else is done as blocking() does it
// (dispatcher.hpp). For what is not here, call std::filesystem in it: blocking([&] { std::filesystem::remove(path); }).
//
// Each operation has two forms: one throws std::system_error, whose message names the operation, the path and the
// reason, the other takes a std::error_code&. Both throw std::bad_alloc and, for a handle that is empty
// (default-constructed or moved from), usage_error.
//
// Every operation is a cancellation point unless it says otherwise, and cancellation is thrown as weft::cancelled in both
// forms. It is looked at before an operation begins. One that has begun is finished, so a cancelled operation on an open
// file has changed nothing. Outside threads may call everything; they just block.
#pragma once

#include <weft/fs/contents.hpp>
#include <weft/fs/directory.hpp>
#include <weft/fs/file.hpp>
#include <weft/fs/sequential.hpp>
