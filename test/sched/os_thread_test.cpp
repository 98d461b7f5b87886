// What the system says about a thread: whether it sleeps, and how much of a processor it has used.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "base/atomic.hpp"
#include "sched/os_thread.hpp"
#include "support/until.hpp"

namespace {

using weft::base::atomic;
using weft::sched::state_of_thread;
using weft::sched::thread_state;

// A thread that sleeps in the kernel until the end of this.
class sleeping_thread {
 public:
  sleeping_thread()
      : thread_([this] {
          id_.store(weft::sched::this_thread_id());
          id_.notify_one();
          over_.wait(false);
        }) {
    id_.wait(0);
  }
  ~sleeping_thread() {
    over_.store(true);
    over_.notify_one();
    thread_.join();
  }
  sleeping_thread(const sleeping_thread&) = delete;
  sleeping_thread& operator=(const sleeping_thread&) = delete;
  [[nodiscard]] int id() const { return id_.load(); }

 private:
  atomic<int> id_{0};
  atomic<bool> over_{false};
  std::thread thread_;
};

// req: CC-16
TEST(OsThread, one_that_sleeps_is_told_from_one_that_runs) {
  const sleeping_thread other;
  support::until([&] { return state_of_thread(other.id()) == thread_state::sleeps; });
  EXPECT_EQ(state_of_thread(weft::sched::this_thread_id()), thread_state::runs);
}

// A process may have closed its standard input: the next file that is opened has descriptor 0.
// req: CC-16
TEST(OsThread, its_state_is_told_whatever_descriptor_the_question_gets) {
  const sleeping_thread other;
  support::until([&] { return state_of_thread(other.id()) == thread_state::sleeps; });
  const int kept = ::dup(STDIN_FILENO);
  ::close(STDIN_FILENO);
  EXPECT_EQ(state_of_thread(other.id()), thread_state::sleeps);
  if (kept >= 0) {
    EXPECT_EQ(::dup2(kept, STDIN_FILENO), STDIN_FILENO);
    ::close(kept);
  }
}

// Nothing is known of it, so it must not be taken for stuck.
// req: CC-16
TEST(OsThread, one_that_does_not_exist_counts_as_running) {
  EXPECT_EQ(state_of_thread(0), thread_state::runs);
  EXPECT_EQ(state_of_thread(-1), thread_state::runs);
}

}  // namespace
