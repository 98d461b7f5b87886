// An io_uring that nothing is ever in flight in: receives that do not wait go in, and their outcomes come out, in one
// call of the kernel.
//
// A receive with MSG_DONTWAIT completes while it is submitted, also if it finds nothing. So the kernel looks at the two
// queues only while somebody is inside of submit(), and the owner makes sure that one thread is there at a time. No
// flag is asked for at the setup, so any thread may enter, and a thread that exits takes nothing with it. The number of
// the ring is not registered, because a registered number belongs to its thread.
//
// io.U1. When submit() returns, the kernel has no buffer any more. It counts what the kernel has taken from the queue,
//     whatever the call says, and returns when as many outcomes have come.
//     test io/a_ring_whose_call_fails_*, io/bytes_are_the_same_*
// io.U2. What the kernel has not taken never happens: it is taken back from the queue.
//     test io/a_ring_that_takes_a_part_*
//
// Rejected: liburing. Most of it is for what is never done here: waiting, submitting from several threads, features of
// other kernels. It would be a dependency of every program that links the library, and its calls could not be replaced
// by a test.
#pragma once

#include <cstddef>
#include <cstdint>

#include "io/kernel.hpp"

struct io_uring_cqe;
struct io_uring_sqe;

namespace weft::inline v1::io {

class ring {
 public:
  explicit ring(const kernel_calls& calls) noexcept : calls_(calls) {}
  ~ring();
  ring(const ring&) = delete;
  ring& operator=(const ring&) = delete;

  [[nodiscard]] bool is_open() const noexcept { return outcomes_ != nullptr; }
  // Returns 0, or the number of the error; the ring is good for nothing then. Room for `most` receives, a power of two.
  [[nodiscard]] int open(unsigned most) noexcept;

  // Whether the kernel knows receives and allows them. Asked once, before the first batch: later such an error would
  // look like one of a socket, which the socket tells only once. Nothing else may be queued.
  struct refusal {
    const char* call = nullptr;  // nullptr: there is none
    int error = 0;
  };
  [[nodiscard]] refusal try_receive() noexcept;

  // Puts a receive into the queue, behind fewer than `most` others. Its outcome will be stored in *outcome.
  void receive(int fd, void* to, std::size_t size, std::ptrdiff_t* outcome) noexcept;
  // Lets the kernel make all of them. Outcomes are counts, or errors as numbers below zero. Those of receives that were
  // not made stay as they are. Returns 0, or the number of the error of the kernel's call.
  [[nodiscard]] int submit() noexcept;

 private:
  // One of the two queues that are shared with the kernel. The numbers run on and wrap around.
  struct queue {
    std::uint32_t* head = nullptr;
    std::uint32_t* tail = nullptr;
    std::uint32_t mask = 0;
  };
  // Stores the outcomes that have come, and returns how many they were.
  unsigned reap() noexcept;

  const kernel_calls& calls_;
  int fd_ = -1;
  void* queues_ = nullptr;  // both queues are in one mapping
  std::size_t queues_size_ = 0;
  io_uring_sqe* entries_ = nullptr;
  std::size_t entries_size_ = 0;
  queue submitted_;
  queue completed_;
  const io_uring_cqe* outcomes_ = nullptr;
  unsigned queued_ = 0;
};

}  // namespace weft::inline v1::io
