// Who is present in a server: the connections that are served, and the acceptors. For the limit, for the drain and its
// report.
//
// io.V1. Whoever is present was counted before its task was spawned, and is counted out after its stream is closed. So
//     once the roster is closed and empty, no handler runs and none will.                 test io/drain_*
#pragma once

#include <cstddef>

#include "base/lock.hpp"
#include <weft/event.hpp>
#include <weft/join_handle.hpp>
#include <weft/net/connection.hpp>
#include <weft/net/drain_report.hpp>
#include <weft/net/endpoint.hpp>
#include <weft/semaphore.hpp>

namespace weft::inline v1::net::detail {

// One connection, from the place that it takes to its end.
struct roster_entry {
  roster_entry* next = nullptr;
  roster_entry* previous = nullptr;
  endpoint peer;
  task_ref task;  // under the lock; empty until the task begins to run
  bool has_place = false;
  bool is_present = false;
  bool was_cut_short = false;
};

class roster {
 public:
  using entry = roster_entry;

  explicit roster(std::size_t most) : room_(most) {}
  roster(const roster&) = delete;
  roster& operator=(const roster&) = delete;

  [[nodiscard]] semaphore& room() noexcept { return room_; }
  void enter(entry& e) noexcept;
  void begins(entry& e, task_ref by) noexcept;
  void leave(entry& e) noexcept;
  void acceptor_comes() noexcept;
  void acceptor_leaves() noexcept;

  // From now on it is counted how connections end.
  void count_ends() noexcept;
  // Nobody comes from now on except through those who are present. all_gone() is set once nobody is.
  void close() noexcept;
  [[nodiscard]] event& all_gone() noexcept { return all_gone_; }
  [[nodiscard]] drain_report report();
  [[nodiscard]] std::size_t connections() noexcept;

 private:
  void release_and_tell() noexcept;  // releases the lock, and tells if nobody is left

  semaphore room_;
  event all_gone_;
  base::lock lock_;
  // Under the lock:
  entry* first_ = nullptr;
  std::size_t connections_ = 0;
  std::size_t acceptors_ = 0;
  std::size_t finished_ = 0;
  std::size_t cut_short_ = 0;
  bool counts_ends_ = false;
  bool is_closed_ = false;
};

}  // namespace weft::inline v1::net::detail
