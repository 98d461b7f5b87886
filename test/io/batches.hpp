// What the tests of receiving in batches share: a kernel that brings the events of many connections at once, counts the
// calls of io_uring and does something in the middle of them, and many connections with a reader each.
#pragma once

#include <linux/io_uring.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "io/faults.hpp"

namespace support {

// The state of ring_kernel(). Nobody polls while a test sets it up: it begins with reset() and hold_events(). The first
// enter of each ring only tries a receive. It is not counted, and only `trial` and `before_trial` disturb it.
struct ring_state {
  script setup, map, enter;  // errors of these calls
  script leave;  // errors of enter that come after it has done its work
  script trial;  // errors of the first enter
  std::function<void()> before_trial, before_enter, after_enter;
  std::function<unsigned(unsigned)> shortened;  // how many of the receives the kernel is asked to make
  io_uring_params about = {};
  io_uring_sqe* entries = nullptr;
  io_uring_cqe* outcomes = nullptr;
  bool is_new = false;
  weft::base::atomic<int> enters{0};
  weft::base::atomic<int> in_batches{0};  // receives that were given to the kernel by enter
  weft::base::atomic<int> one_by_one{0};  // calls of recv
  weft::base::atomic<bool> holds_events{false};

  void reset() {
    for (script* s : {&setup, &map, &enter, &leave, &trial}) s->play({});
    before_trial = before_enter = after_enter = {};
    shortened = {};
    enters = in_batches = one_by_one = 0;
  }
  // Between these the kernel tells of no event. All that come meanwhile are told at once.
  void hold_events() { holds_events = true; }
  void release_events() { holds_events = false; }
};
inline ring_state rings;

[[nodiscard]] inline const io::kernel_calls& ring_kernel() {
  static const io::kernel_calls calls = [] {
    io::kernel_calls k = io::real_kernel();
    k.recv = [](int fd, void* to, std::size_t size, int flags) noexcept {
      ++rings.one_by_one;
      return io::real_kernel().recv(fd, to, size, flags);
    };
    k.epoll_wait = [](int epoll, epoll_event* events, int most, const timespec* timeout) noexcept {
      if (!rings.holds_events) return io::real_kernel().epoll_wait(epoll, events, most, timeout);
      ::usleep(50);
      return 0;
    };
    k.ring_setup = [](unsigned entries, io_uring_params* about) noexcept {
      if (rings.setup.fails()) return -1;
      const int ring = io::real_kernel().ring_setup(entries, about);
      rings.about = *about;
      rings.is_new = true;
      return ring;
    };
    k.ring_map = [](std::size_t size, int ring, std::uint64_t part) noexcept -> void* {
      if (rings.map.fails()) return nullptr;
      void* at = io::real_kernel().ring_map(size, ring, part);
      if (part == IORING_OFF_SQES)
        rings.entries = static_cast<io_uring_sqe*>(at);
      else if (at != nullptr)
        rings.outcomes = reinterpret_cast<io_uring_cqe*>(static_cast<std::byte*>(at) + rings.about.cq_off.cqes);
      return at;
    };
    k.ring_enter = [](int ring, unsigned submit, unsigned least, unsigned flags) noexcept {
      if (std::exchange(rings.is_new, false)) {
        if (rings.trial.fails()) return -1;
        if (rings.before_trial) rings.before_trial();
        return io::real_kernel().ring_enter(ring, submit, least, flags);
      }
      ++rings.enters;
      if (rings.enter.fails()) return -1;
      rings.in_batches += static_cast<int>(submit);
      if (rings.before_enter) rings.before_enter();
      if (rings.shortened) submit = rings.shortened(submit);
      const int outcome = io::real_kernel().ring_enter(ring, submit, least, flags);
      if (rings.after_enter) rings.after_enter();
      return rings.leave.fails() ? -1 : outcome;
    };
    return k;
  }();
  return calls;
}

// Whether this machine lets the process use io_uring. Containers often do not.
[[nodiscard]] inline bool has_io_uring() {
  io_uring_params about{};
  const int ring = io::real_kernel().ring_setup(8, &about);
  if (ring >= 0) ::close(ring);
  return ring >= 0;
}
#define SKIP_WITHOUT_IO_URING() \
  if (!support::has_io_uring()) GTEST_SKIP() << "io_uring is denied here"

// Runs body() as a task of a runtime that receives in batches, at 1 and 2 workers, and sees that all descriptors are
// closed afterwards.
template <class Body>
void with_batches(Body body, io::reactor::batches how = io::reactor::batches::and_tell) {
  const watchdog guard(std::chrono::seconds(110), "a test of batches");
  const std::size_t before = open_descriptors();
  for (const std::size_t workers : {1, 2}) {
    SCOPED_TRACE(testing::Message() << workers << " workers");
    rings.reset();
    faulty_runtime rt(workers, ring_kernel(), how);
    rt.run(body);
    rings.release_events();
  }
  EXPECT_EQ(open_descriptors(), before) << "descriptors are left open";
}

// How many tasks of the calling task's runtime wait for an event of the kernel.
[[nodiscard]] inline std::int64_t waiting_tasks() {
  auto* polled = weft::sched::this_worker()->owner().polling().polled();
  return dynamic_cast<io::reactor&>(*polled).set()->waiting().load(weft::base::relaxed);
}

// Connections whose servers read.
class crowd {
 public:
  explicit crowd(std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) pairs_.push_back(connected_pair());
  }
  [[nodiscard]] std::size_t size() const { return pairs_.size(); }
  [[nodiscard]] tcp_pair& operator[](std::size_t i) { return pairs_[i]; }

  // Starts read(server) for each connection, and returns when all of them wait. Events are held from then on.
  template <class Read>
  [[nodiscard]] auto wait_in(Read read) {
    rings.hold_events();
    std::vector<decltype(spawn_and_park([&] { return read(std::as_const(pairs_[0].server)); }))> readers;
    for (tcp_pair& p : pairs_)
      readers.push_back(spawn_and_park([read, s = &p.server] { return read(std::as_const(*s)); }));
    rings.one_by_one = 0;
    return readers;
  }
  // Sends the same bytes to every server, without letting other tasks run.
  void send(const std::string& bytes) {
    for (const tcp_pair& p : pairs_)
      if (::send(p.client.native_handle(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
        std::abort();
  }
  // Takes what has come to the servers from under their readers.
  void steal() {
    char room[64];
    for (const tcp_pair& p : pairs_) (void)!::recv(p.server.native_handle(), room, sizeof room, MSG_DONTWAIT);
  }

 private:
  std::vector<tcp_pair> pairs_;
};

[[nodiscard]] inline std::string read_once(const net::tcp_stream& from) {
  char room[64];
  return {room, from.read_some(room)};
}

}  // namespace support
