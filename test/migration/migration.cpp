// A task that resumes on another thread at every suspension keeps what belongs to it. Built four times (CMakeLists.txt), with a
// runtime that forces it. Only the public interface is used, as a user's code would.
#include <weft/weft.hpp>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cfenv>
#include <exception>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;

// Asked of the kernel: pthread_self() is declared const, and compilers believe it.
[[gnu::noinline]] long thread_id() { return ::syscall(SYS_gettid); }
// Of the thread that runs now: so is the address of errno, and a caller would go on with that of the thread it has left.
[[gnu::noinline]] int errno_here() {
  asm volatile("" ::: "memory");
  return errno;
}
[[gnu::noinline]] void set_errno(int value) {
  asm volatile("" ::: "memory");
  errno = value;
}

constexpr std::size_t worker_counts[] = {2, 4};
constexpr int tasks_at_once = 32;
constexpr int most_rounds = 100;

std::atomic<int> moves{0};  // suspensions that ended on another thread

// Every kind of suspension there is.
void suspend(int how) {
  const long before = thread_id();
  switch (how % 3) {
    case 0: weft::yield(); break;
    case 1: weft::sleep_for(200us); break;
    default: weft::spawn([] {}).join();
  }
  if (thread_id() != before) ++moves;
}

// Runs `body` in several tasks at once, on several workers, and makes sure that they moved. If the system gives a processor
// to one of the workers only, that one may run them all; then they run once more.
template <class Body>
void in_migrating_tasks(Body body) {
  for (const std::size_t workers : worker_counts) {
    moves = 0;
    for (int round = 0; round < most_rounds && moves == 0; ++round)
      weft::run(weft::runtime_options{.workers = workers}, [&] {
        std::vector<weft::join_handle<void>> tasks;
        for (int i = 0; i < tasks_at_once; ++i) tasks.push_back(weft::spawn([&, i] { body(i); }));
        for (auto& t : tasks) t.join();
      });
    EXPECT_GT(moves.load(), 0) << "nothing migrated: the test would prove nothing";
  }
}

// Three workers: the one that was in this task when the system put it aside may be passed over as stuck for a while, and there is
// still another.
// req: W-1
TEST(Migration, every_yield_resumes_on_another_thread) {
  weft::run(weft::runtime_options{.workers = 3}, [] {
    for (int i = 0; i < 1000; ++i) {
      const long before = thread_id();
      weft::yield();
      EXPECT_NE(thread_id(), before);
    }
  });
}

// req: W-1 CSP-1
TEST(Migration, a_task_keeps_its_identity_and_its_frame) {
  in_migrating_tasks([](int i) {
    const std::string name = "task " + std::to_string(i);
    weft::this_task::set_name(name);
    const std::uint64_t id = weft::this_task::id();
    std::vector<int> written;
    for (int round = 0; round < 60; ++round) {
      written.push_back(round * i);
      suspend(round);
      ASSERT_EQ(weft::this_task::id(), id);
      ASSERT_EQ(weft::this_task::name(), name);
      for (int k = 0; k <= round; ++k) ASSERT_EQ(written[static_cast<std::size_t>(k)], k * i);
    }
  });
}

// req: W-1
TEST(Migration, an_exception_being_handled_stays_with_its_task) {
  in_migrating_tasks([](int i) {
    for (int round = 0; round < 30; ++round) {
      const std::string mine = std::to_string(i) + "/" + std::to_string(round);
      try {
        throw std::runtime_error(mine);
      } catch (const std::runtime_error& e) {
        suspend(round);
        ASSERT_EQ(e.what(), mine);
        ASSERT_NE(std::current_exception(), nullptr);
        try {
          throw;  // what is being handled must be ours, not that of whoever ran on this thread before
        } catch (const std::runtime_error& again) {
          suspend(round + 1);
          ASSERT_EQ(again.what(), mine);
        }
      }
      ASSERT_EQ(std::current_exception(), nullptr);
      suspend(round);
      ASSERT_EQ(std::current_exception(), nullptr);
    }
  });
}

// req: W-1
TEST(Migration, nested_handlers_unwind_in_their_own_order) {
  in_migrating_tasks([](int i) {
    try {
      throw i;
    } catch (int outer) {
      suspend(i);
      try {
        throw std::string("inner");
      } catch (const std::string& inner) {
        suspend(i + 1);
        ASSERT_EQ(inner, "inner");
      }
      suspend(i + 2);
      ASSERT_EQ(outer, i);
      try {
        throw;
      } catch (int same) {
        ASSERT_EQ(same, i);
      }
    }
  });
}

struct suspends_in_destructor {
  int how;
  int& in_flight;
  ~suspends_in_destructor() {
    suspend(how);
    in_flight = std::uncaught_exceptions();
  }
};

// req: W-1
TEST(Migration, suspending_in_a_destructor_during_unwinding_keeps_the_count_of_exceptions_in_flight) {
  in_migrating_tasks([](int i) {
    for (int round = 0; round < 10; ++round) {
      int in_flight = -1;
      try {
        suspends_in_destructor guard{round, in_flight};
        throw i;
      } catch (int value) {
        ASSERT_EQ(value, i);
      }
      ASSERT_EQ(in_flight, 1);
      ASSERT_EQ(std::uncaught_exceptions(), 0);
    }
  });
}

// req: W-1
TEST(Migration, a_captured_exception_is_rethrown_elsewhere) {
  in_migrating_tasks([](int i) {
    std::exception_ptr kept;
    try {
      throw std::out_of_range(std::to_string(i));
    } catch (...) {
      kept = std::current_exception();
    }
    suspend(i);
    EXPECT_THROW(std::rethrow_exception(kept), std::out_of_range);
  });
}

// req: W-1
TEST(Migration, rounding_mode_belongs_to_the_task) {
  constexpr int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  in_migrating_tasks([&](int i) {
    ASSERT_EQ(std::fegetround(), FE_TONEAREST) << "a new task starts with the default";
    const int mine = modes[i % 4];
    std::fesetround(mine);
    for (int round = 0; round < 60; ++round) {
      suspend(round);
      ASSERT_EQ(std::fegetround(), mine);
    }
  });
}

// req: W-1
TEST(Migration, waiting_leaves_errno_of_the_thread_alone) {
  in_migrating_tasks([](int i) {
    for (int round = 0; round < 30; ++round) {
      set_errno(4000 + i);
      suspend(round);
      // On whatever thread we are now: our own waits and wakes must not have left an error of a futex there.
      const int found = errno_here();
      ASSERT_NE(found, EAGAIN);
      ASSERT_NE(found, ETIMEDOUT);
    }
  });
}

// req: W-1
TEST(Migration, cancellation_unwinds_on_whatever_thread_it_arrives) {
  for (const std::size_t workers : worker_counts)
    weft::run(weft::runtime_options{.workers = workers}, [] {
      std::atomic<int> unwound{0};
      struct count_exit {
        std::atomic<int>& count;
        ~count_exit() {
          weft::yield();  // shielded while unwinding
          ++count;
        }
      };
      std::vector<weft::join_handle<void>> tasks;
      for (int i = 0; i < 100; ++i)
        tasks.push_back(weft::spawn([&, i] {
          count_exit guard{unwound};
          for (;;) suspend(i);
        }));
      for (int i = 0; i < 10; ++i) weft::yield();
      for (auto& t : tasks) t.cancel();
      for (auto& t : tasks) EXPECT_THROW(t.join(), weft::task_cancelled);
      EXPECT_EQ(unwound.load(), 100);
    });
}

}  // namespace
