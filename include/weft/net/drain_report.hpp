// How a server has ended (server.hpp).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <weft/detail/config.hpp>
#include <weft/net/endpoint.hpp>
#include <weft/task_status.hpp>

namespace weft::inline v1::net {

// A handler that was cancelled and has not ended: it is shielded, or in blocking(), or computes.
struct survivor {
  task_status task = {};  // an id of 0: the task has not begun to run
  endpoint peer = {};  // of the connection that it serves
};

// Of the connections that were served when the drain began.
struct drain_report {
  std::size_t finished = 0;  // ended by themselves
  std::size_t cancelled = 0;  // were cancelled when the limit had passed, and have ended
  std::vector<survivor> survivors = {};

  // Whether all of them came to their own end.
  [[nodiscard]] bool is_clean() const noexcept { return cancelled == 0 && survivors.empty(); }
};

// One line, and one more for each survivor:
//   drained: 12 finished, 3 cancelled, 1 survived
//     127.0.0.1:40112: #17 "upload" waits for semaphore at upload.cpp:88, 2.1 s
[[nodiscard]] WEFT_API std::string to_string(const drain_report& r);
template <class Stream>
  requires requires(Stream& to, const std::string& text) { to << text; }
Stream& operator<<(Stream& to, const drain_report& r) {
  to << to_string(r);
  return to;
}

}  // namespace weft::inline v1::net
