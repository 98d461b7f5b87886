// One epoll of the kernel: the descriptors that a runtime watches, and how many of its tasks wait for them.
//
// The runtime's reactor and every descriptor that is watched share it, because a descriptor may outlive the runtime in
// which it was watched. The epoll itself is opened when the first descriptor is added, so a runtime without I/O has
// none.
//
// The kernel knows a registration by the number and the open file behind it, and forgets it when the file is closed. A
// library may close a number that was borrowed from it (weft/descriptor.hpp), and the number may soon stand for a
// descriptor of somebody else, who has it watched. So the set remembers whose registration each number has:
//
// io.E1. Nobody removes or takes for its own the registration of somebody else.
//                                                  test io/the_end_of_a_borrowed_*, io/a_number_that_was_opened_again_*
#pragma once

#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/lock.hpp"
#include "io/direction.hpp"
#include "io/kernel.hpp"
#include "sched/scheduler.hpp"

namespace weft::inline v1::io {

class epoll_set {
 public:
  explicit epoll_set(const kernel_calls& calls) noexcept : calls_(calls) {}
  ~epoll_set();
  epoll_set(const epoll_set&) = delete;
  epoll_set& operator=(const epoll_set&) = delete;

  // What is asked of the kernel. A descriptor that can be written to says so with every event, so who has never waited
  // for that is not told.
  enum class interest : std::uint8_t { reading, both };

  // Edge-triggered. `tag` comes back with each event. If the descriptor is ready now, that is the first edge, also after
  // a change. Nothing happens if it is there already with the same tag, and errc::file_exists is returned if it is there
  // with another.
  [[nodiscard]] std::error_code add(int fd, std::uint64_t tag, interest in) noexcept;
  // For the one who has added it.
  [[nodiscard]] std::error_code change(int fd, std::uint64_t tag, interest in) noexcept;
  // Does nothing if the number is there with another tag by now.
  void remove(int fd, std::uint64_t tag) noexcept;

  // Waits for events until the deadline or an interrupt(). Returns those that belong to descriptors, at most as many as
  // `room` has. One thread at a time calls this.
  [[nodiscard]] std::span<epoll_event> wait(base::time_ns deadline, std::span<epoll_event> room) noexcept;
  void interrupt() noexcept;

  [[nodiscard]] waiting_count& waiting() noexcept { return waiting_; }

 private:
  [[nodiscard]] std::error_code open() noexcept;
  [[nodiscard]] std::error_code control(int operation, int fd, std::uint64_t tag, interest in) noexcept;
  [[nodiscard]] bool make_room_for(int fd) noexcept;
  // A forked child shares the epoll with its parent, and must not change it.
  [[nodiscard]] bool belongs_to_parent() const noexcept { return made_in_ != sched::fork_generation(); }

  const kernel_calls& calls_;
  const std::uint32_t made_in_ = sched::fork_generation();
  // Of opening, adding and removing. The kernel holds a mutex of the epoll's for as long.
  base::lock lock_;
  std::vector<std::uint64_t> tags_;  // under lock_: by number, with which tag it was added last
  // -1 until the first descriptor is added. Whoever polls has seen a waiting task, which was counted after that.
  base::atomic<int> epoll_{-1};
  base::atomic<int> bell_{-1};  // an eventfd that ends a wait
  alignas(base::cache_line) waiting_count waiting_{0};
};

}  // namespace weft::inline v1::io
