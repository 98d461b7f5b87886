// What the tests of faults share: runtimes over kernels that fail on purpose, tasks that are seen to wait, and peers that
// misbehave.
#pragma once

#include <linux/filter.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "io/kernel.hpp"
#include "io/net.hpp"
#include "io/reactor.hpp"
#include "sched/scheduler.hpp"
#include "wait/fiber_wait.hpp"

namespace support {

namespace io = weft::io;

// A runtime whose descriptors use these kernel calls.
class faulty_runtime {
 public:
  faulty_runtime(std::size_t workers, const io::kernel_calls& calls,
                 io::reactor::batches batches = io::reactor::batches::none)
      : core_(options(workers, calls, batches)),
        known_(core_) {}

  template <class F>
  auto spawn(F f) {
    return weft::detail::spawn_in(&core_, nullptr, std::move(f));
  }
  template <class F>
  auto run(F f) {
    return spawn(std::move(f)).join();
  }
  [[nodiscard]] bool all_sleep() { return core_.idle().sleeping() == core_.pool().live(); }
  // How many tasks wait for an event of the kernel.
  [[nodiscard]] std::int64_t waiting() {
    return dynamic_cast<io::reactor&>(*core_.polling().polled()).set()->waiting().load(weft::base::relaxed);
  }

 private:
  static weft::sched::scheduler_options options(std::size_t workers, const io::kernel_calls& calls,
                                                io::reactor::batches batches) {
    weft::sched::scheduler_options o;
    o.workers = workers;
    o.elastic = false;
    o.make_driver = [&calls, batches] { return std::make_unique<io::reactor>(calls, batches); };
    return o;
  }
  weft::sched::scheduler core_;
  const watched known_;
};

// Runs test(rt) with a runtime over that kernel at each worker count, and sees that all descriptors are closed
// afterwards.
template <class Test>
void at_worker_counts_over(const io::kernel_calls& calls, Test test) {
  const watchdog guard(std::chrono::seconds(110), "a test of faults");
  const std::size_t before = open_descriptors();
  at_worker_counts([&](std::size_t workers) {
    faulty_runtime rt(workers, calls);
    test(rt);
  });
  EXPECT_EQ(open_descriptors(), before) << "descriptors are left open";
}
// The same, with the test as a task.
template <class Body>
void with_kernel(const io::kernel_calls& calls, Body body) {
  at_worker_counts_over(calls, [&](faulty_runtime& rt) { rt.run(body); });
}

// What happens to the calls of one entry of a kernel's table, one after the other: an error, or 0 for the real call,
// which also follows after the last.
class script {
 public:
  // Nobody may be inside of the call meanwhile.
  void play(std::vector<int> errors) {
    errors_ = std::move(errors);
    next_.store(0);
  }
  // Whether this call is to fail. It sets errno then.
  [[nodiscard]] bool fails() noexcept {
    const std::size_t i = next_.fetch_add(1);
    if (i >= errors_.size() || errors_[i] == 0) return false;
    errno = errors_[i];
    return true;
  }
  [[nodiscard]] std::size_t calls() const noexcept { return next_.load(); }

 private:
  std::vector<int> errors_;
  weft::base::atomic<std::size_t> next_{0};
};

// Starts a task in the runtime of the running one, and returns when it waits.
template <class F>
[[nodiscard]] auto spawn_and_park(F f) {
  using record = const weft::task::record*;
  const auto who = std::make_shared<weft::base::atomic<record>>(nullptr);
  auto handle = weft::spawn([who, f = std::move(f)]() mutable {
    who->store(weft::waits::current_task(), weft::base::release);
    return f();
  });
  until([&] { return is_parked(who->load(weft::base::acquire)); });
  return handle;
}

// From now on the socket sees no packet any more: neither data, nor acknowledgements, nor the wish to connect.
inline void drop_packets(int fd) {
  sock_filter none[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program{1, none};
  if (::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) std::abort();
}

// Closes with a reset instead of an end.
inline void reset(net::tcp_stream& s) {
  s.set(net::linger{std::chrono::seconds(0)});
  s.close();
}

// Waits until so many bytes can be read from the socket.
inline void until_buffered(const net::tcp_stream& s, std::size_t bytes) {
  until([&] {
    std::vector<char> room(bytes);
    return ::recv(s.native_handle(), room.data(), bytes, MSG_PEEK | MSG_DONTWAIT) == static_cast<ssize_t>(bytes);
  });
}

// Writes until the peer, which does not read, has no more room.
inline void fill(const net::tcp_stream& s) {
  const std::string much(std::size_t{1} << 16, '.');
  while (::send(s.native_handle(), much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {}
}

}  // namespace support
