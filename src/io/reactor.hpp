// The driver of a runtime on the kernel's epoll: it brings edges to the directions of descriptors (direction.hpp) and
// hands the tasks that they wake to whoever polls.
#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <memory>
#include <span>

#include "io/batcher.hpp"
#include "io/epoll_set.hpp"
#include "sched/driver.hpp"

namespace weft::inline v1::io {

class reactor final : public sched::driver {
 public:
  // How it receives for tasks that wait: not at all, so that they do it themselves; or in batches (batcher.hpp) until
  // the kernel refuses that, and one line says so, or none.
  enum class batches : std::uint8_t { none, quietly, and_tell };

  explicit reactor(const kernel_calls& calls, batches b = batches::none);

  [[nodiscard]] bool is_wanted() const noexcept override { return set_->waiting().load(base::relaxed) != 0; }
  void poll(base::time_ns deadline, std::size_t most, sched::chain<task::record>& woken) noexcept override;
  void interrupt() noexcept override { set_->interrupt(); }

  [[nodiscard]] const kernel_calls& calls() const noexcept { return calls_; }
  [[nodiscard]] const std::shared_ptr<epoll_set>& set() const noexcept { return set_; }
  // Whether it receives in batches, as far as is known. Called while nobody polls.
  [[nodiscard]] bool receives_in_batches() const noexcept { return batcher_ != nullptr; }

 private:
  static constexpr std::size_t most_events = 128;  // each may wake a reader and a writer
  static_assert(most_events <= batcher::most);

  // Tells the directions of these events, and appends the tasks that were claimed to `woken`. on_reader(record, node)
  // is called for those who waited to read.
  template <class OnReader>
  void tell(std::span<const epoll_event> events, sched::chain<task::record>& woken, OnReader on_reader) noexcept;
  void stop_batches() noexcept;

  const kernel_calls& calls_;
  const std::shared_ptr<epoll_set> set_;
  epoll_event events_[most_events] = {};  // of the present poll
  // Who polls uses it, so a poll sees what the last one has left, by take() and leave() of sched/poller.hpp.
  std::unique_ptr<batcher> batcher_;
  const bool tells_;
};

}  // namespace weft::inline v1::io
