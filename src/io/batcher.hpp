// Receiving for many tasks with one call: when a poll has claimed at least eight tasks that wait to receive, all their
// receives are made at once by io_uring (ring.hpp), before the tasks are queued. A task that is resumed finds its
// outcome and makes no call of its own. Everything else stays with epoll, and so does all of it where io_uring is
// denied.
//
// The poller owns this, and one thread polls at a time (sched.Q2). It works on tasks between their claim and the moment
// at which they are queued. Nobody else ends their waits then, or resumes them: a cancellation, a deadline and a close
// came before the claim, and the task is not here; or they come after it, and find no wait. This is what keeps the
// following true:
//
// io.B1. The number that is received from is that of the task's operation: the operation counts as a use of the
//     descriptor while it waits, so a close() does not give the number back (io.R1).
//     test io/a_batch_wins_over_a_close_*
// io.B2. The buffer and the reception lie in the frame of a task that does not run before it is queued, and the kernel
//     has no buffer any more by then (io.U1).  test io/a_batch_wins_over_*, io/a_batch_that_races_*
// io.B3. What was received is the outcome of the task's operation, whatever comes later: it is returned before anything
//     else is looked at (transfer.hpp). No byte is lost to a cancellation, a deadline or a close.
//     model/direction_batch_*, test io/a_batch_wins_over_*, io/a_batch_that_races_*
// io.B4. No edge is lost (io.D1): the direction is looked at before the call, and what the task does with an outcome,
//     also with EAGAIN, it does with that view. An edge wakes one waiter, which passes it on, as ever (io.D2).
//     model/direction_batch_*, test io/a_batch_that_finds_nothing_*, io/a_batch_serves_two_readers_*
// io.B5. A receive that was not made, or that the ring itself has failed, is left to the task: its wait has ended as
//     without the batcher. Once the kernel refuses the ring, nothing is tried again, and one line says so.
//     test io/a_ring_*
// io.B6. An error of a socket is the outcome of its reader: the socket tells it once. Whether the kernel refuses receives
//     as such is found out with a socket of the ring's own, before the first batch.
//     test io/an_error_of_a_socket_in_a_batch_*, io/a_ring_that_does_not_know_receives_*
//
// Left to the task are also arms of a select, waits with a timer of their own, reads into several buffers, what is not
// a socket or belongs to somebody else, descriptors that use another table of kernel calls, and reads of so much that
// one poll would take long. An outside thread waits by poll(2) and is never claimed by a poller.
#pragma once

#include <cstddef>

#include "io/fd_record.hpp"
#include "io/ring.hpp"

namespace weft::inline v1::io {

// How many readers a poll must have claimed. Fewer receives are cheaper one by one: a single one takes a fifth longer
// through the ring. A variable, because tests make it smaller before they make a runtime.
extern std::size_t least_batch;

class batcher {
 public:
  static constexpr std::size_t most = 128;  // a power of two; no poll brings more readers

  explicit batcher(const kernel_calls& calls) noexcept : calls_(calls), ring_(calls) {}
  batcher(const batcher&) = delete;
  batcher& operator=(const batcher&) = delete;

  // The wait of a task for this descriptor's reading side was claimed, and the task is not queued yet.
  void add(fd_record& r, limited_node& n) noexcept;
  // Receives for those that were added since the last time, if they are enough. Returns false if io_uring cannot be
  // used: why() says it, and there is no need to ask again.
  [[nodiscard]] bool receive() noexcept;

  struct reason {
    const char* call;
    int error;
  };
  [[nodiscard]] reason why() const noexcept { return why_; }

 private:
  struct entry {
    fd_record* from;
    limited_node* waits;
  };
  [[nodiscard]] bool give_up(const char* call, int error) noexcept {
    why_ = {call, error};
    return false;
  }

  const kernel_calls& calls_;
  ring ring_;
  reason why_ = {};
  std::size_t count_ = 0;
  entry entries_[most];
};

}  // namespace weft::inline v1::io
