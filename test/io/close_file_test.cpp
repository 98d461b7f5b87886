// Closing a file that others use, and what cancellation leaves open: nothing.
#include <thread>

#include "io/files.hpp"

namespace {

using namespace file_test;
using CloseFile = leaves_no_descriptor;

// A kernel whose reads wait until the test lets them go on, and that counts what it closes.
struct {
  base::atomic<bool> is_inside{false};
  base::atomic<bool> may_go_on{false};
  base::atomic<int> closed{0};
} held;

const io::kernel_calls& holding_kernel() {
  static const io::kernel_calls calls = [] {
    io::kernel_calls k = io::real_kernel();
    k.preadv2 = [](int fd, const iovec* to, int count, off_t offset, int flags) noexcept -> ssize_t {
      if ((flags & RWF_NOWAIT) != 0) return errno = EAGAIN, -1;
      held.is_inside = true;
      support::hold_worker_until([] { return held.may_go_on.load(); });
      return ::preadv2(fd, to, count, offset, 0);
    };
    k.close = [](int fd) noexcept {
      ++held.closed;
      return ::close(fd);
    };
    return k;
  }();
  return calls;
}

// req: IO-9
TEST_F(CloseFile, a_close_lets_what_has_begun_end_and_then_gives_the_number_back_once) {
  const path p = dir.with("f", "text");
  support::watchdog guard(60s, "a close during a read");
  for (const bool by_thread : {false, true}) {
    watched_runtime rt({.workers = 2});
    held.is_inside = held.may_go_on = false;
    held.closed = 0;
    rt->run([&] {
      file f = open_with(holding_kernel(), p);
      const int fd = f.native_handle();
      char room[4] = {};
      auto reads = weft::spawn([&] { return f.read_at(room, 0); });
      until([] { return held.is_inside.load(); });
      EXPECT_THROW((void)f.release(), weft::usage_error);
      if (by_thread)
        std::thread([&] { f.close(); }).join();
      else
        f.close();
      EXPECT_FALSE(f.is_open());
      std::error_code why;
      EXPECT_EQ(f.size(why), 0U);
      EXPECT_EQ(why, std::errc::bad_file_descriptor);
      EXPECT_EQ(held.closed.load(), 0);
      EXPECT_NE(::fcntl(fd, F_GETFD), -1) << "the number is not free for others";
      held.may_go_on = true;
      EXPECT_EQ(reads.join(), 4U);
      EXPECT_EQ(std::string_view(room, 4), "text");
      EXPECT_EQ(held.closed.load(), 1);
      EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
      f.close();
    });
    EXPECT_EQ(held.closed.load(), 1);
  }
}

// Readers of one file, a task that closes it, and others that open files at the same time: a reader that used a number
// after it was given back would read what a stranger wrote.
// req: IO-9
TEST_F(CloseFile, a_close_never_lets_a_reader_see_another_file) {
  const path mine = dir.with("mine", std::string(64, 'm'));
  const path foreign = dir.with("foreign", std::string(64, 'f'));
  at_worker_counts_in_a_task("closes against reads", [&] {
    for (std::size_t round = 0; round < scaled(300); ++round) {
      file f = file::open(mine);
      std::vector<weft::join_handle<void>> all;
      for (int t = 0; t < 3; ++t)
        all.push_back(weft::spawn([&] {
          for (;;) {
            char room[64] = {};
            std::error_code why;
            const std::size_t n = f.read_at(room, 0, why);
            if (why) {
              EXPECT_EQ(why, std::errc::bad_file_descriptor);
              return;
            }
            ASSERT_EQ(std::string_view(room, n), std::string(64, 'm'));
          }
        }));
      all.push_back(weft::spawn([&] {
        weft::yield();
        f.close();
        const file a = file::open(foreign);
        const file b = file::open(foreign);
      }));
      for (auto& t : all) t.join();
    }
  });
}

TEST_F(CloseFile, an_error_of_the_kernel_is_told_and_the_file_is_closed) {
  static io::kernel_calls full = io::real_kernel();
  full.close = [](int fd) noexcept {
    ::close(fd);
    errno = ENOSPC;
    return -1;
  };
  in_thread_and_tasks([&] {
    file f = open_with(full, dir / "f", for_writing);
    EXPECT_NE(message_of([&] { f.close(); }, std::errc::no_space_on_device).find("weft: close "), std::string::npos);
    EXPECT_FALSE(f.is_open());
    file g = open_with(full, dir / "f", for_writing);
    std::error_code why;
    g.close(why);
    EXPECT_EQ(why, std::errc::no_space_on_device);
    const file h = open_with(full, dir / "f", for_writing);  // its destructor says nothing
  });
}

TEST_F(CloseFile, a_handle_that_is_assigned_to_closes_what_it_had) {
  const path p = dir.with("f", "text");
  in_thread_and_tasks([&] {
    file f = file::open(p);
    const int first = f.native_handle();
    file g = file::open(p);
    const int second = g.native_handle();
    f = std::move(g);
    EXPECT_EQ(f.native_handle(), second);
    EXPECT_EQ(::fcntl(first, F_GETFD), -1);
  });
}

// The task is cancelled while the kernel opens the file. It gets the file, and closes it as it unwinds.
// req: IO-9
TEST_F(CloseFile, an_open_that_is_cancelled_leaves_no_descriptor) {
  static base::atomic<bool> opened;
  static io::kernel_calls cancelling = io::real_kernel();
  cancelling.open = [](const char* p, int flags, mode_t permissions) noexcept {
    weft::this_task::ref().cancel();
    const int fd = ::open(p, flags, permissions);
    opened = fd >= 0;
    return fd;
  };
  const path p = dir.with("f", "text");
  at_worker_counts_in_a_task([&] {
    opened = false;
    const std::size_t before = support::open_descriptors();
    bool went_on = false;
    auto t = weft::spawn([&] {
      const file f = open_with(cancelling, p);
      EXPECT_TRUE(f.is_open());
      (void)f.size();
      went_on = true;
    });
    EXPECT_THROW(t.join(), weft::task_cancelled);
    EXPECT_TRUE(opened.load());
    EXPECT_FALSE(went_on);
    EXPECT_EQ(support::open_descriptors(), before);
  });
}

// The buffer is the task's own, and goes with it. A read that has begun is finished before.
// req: IO-9
TEST_F(CloseFile, a_read_that_is_cancelled_does_not_touch_a_buffer_that_is_gone) {
  const path p = dir.with("f", "text");
  support::watchdog guard(60s, "a cancelled read");
  watched_runtime rt({.workers = 2});
  held.is_inside = held.may_go_on = false;
  rt->run([&] {
    const file f = open_with(holding_kernel(), p);
    auto reads = weft::spawn([&] {
      std::string room(4, '\0');
      EXPECT_EQ(f.read_at(room, 0), 4U) << "it had begun";
      EXPECT_EQ(room, "text");
      weft::this_task::check();
      ADD_FAILURE() << "not cancelled";
    });
    until([] { return held.is_inside.load(); });
    reads.cancel();
    EXPECT_FALSE(reads.is_finished());
    held.may_go_on = true;
    EXPECT_THROW(reads.join(), weft::task_cancelled);
  });
}

// Tasks that are cancelled at any moment of their work with files.
// req: IO-9
TEST_F(CloseFile, cancelled_tasks_leave_nothing_open_whenever_it_comes) {
  const path p = dir.with("f", letters(1000));
  at_worker_counts_in_a_task("tasks that are cancelled among files", [&] {
    const std::size_t before = support::open_descriptors();
    for (std::size_t round = 0; round < scaled(100); ++round) {
      std::vector<weft::join_handle<void>> all;
      for (int t = 0; t < 4; ++t)
        all.push_back(weft::spawn([&, t] {
          for (;;) {
            file f = file::open(p, {.write = true});
            std::string room(100, '\0');
            (void)f.read_at(room, 100);
            f.write_all_at(room, 100);
            if (t == 0) fs::write_file(dir / "g", room, {.sync = false});
            weft::yield();
          }
        }));
      for (std::size_t i = 0; i < round % 16; ++i) weft::yield();
      for (auto& t : all) t.cancel();
      for (auto& t : all) EXPECT_THROW(t.join(), weft::task_cancelled);
    }
    EXPECT_EQ(support::open_descriptors(), before);
    std::filesystem::remove(dir / "g");
    EXPECT_EQ(dir.entries(), 1U) << "temporary files are left";
    EXPECT_EQ(fs::read_file(p), letters(1000));
  });
}

}  // namespace
