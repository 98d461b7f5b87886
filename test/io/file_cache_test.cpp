// Which reads are made on the worker, and which are handed over.
#include <thread>

#include "io/files.hpp"

namespace {

using namespace file_test;
using FileCache = leaves_no_descriptor;

// What the attempt on the worker returns instead of what the kernel would: -1 and this error, or this count.
struct answer {
  ssize_t count = -1;
  int error = EAGAIN;
} attempt;
base::atomic<int> attempts{0};
base::atomic<int> others{0};

const io::kernel_calls& kernel_without_cache() {
  static const io::kernel_calls calls = [] {
    io::kernel_calls k = io::real_kernel();
    k.preadv2 = [](int fd, const iovec* to, int count, off_t offset, int flags) noexcept -> ssize_t {
      if ((flags & RWF_NOWAIT) == 0) {
        ++others;
        return ::preadv2(fd, to, count, offset, flags);
      }
      ++attempts;
      if (attempt.count > 0) return ::pread(fd, to->iov_base, static_cast<std::size_t>(attempt.count), offset);
      errno = attempt.error;
      return attempt.count;
    };
    return k;
  }();
  return calls;
}

// Whether the kernel can read a file of this directory without waiting.
bool can_attempt(const path& cached) {
  const int fd = ::open(cached.c_str(), O_RDONLY | O_CLOEXEC);
  char c = 0;
  const iovec one{&c, 1};
  const bool can = ::preadv2(fd, &one, 1, 0, RWF_NOWAIT) == 1;
  ::close(fd);
  return can;
}

// req: IO-9
TEST_F(FileCache, a_cached_read_is_made_without_a_hand_over) {
  const std::string text = letters(64 << 10);
  const path p = dir.with("f", text);
  if (!can_attempt(p)) GTEST_SKIP() << "this file system cannot read without waiting";
  at_worker_counts([&](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([&] {
      const file f = file::open(p);
      const std::uint64_t before = hand_overs(rt);
      const std::uint64_t parks = rt->statistics().parks;
      std::string room(4096, '\0');
      for (std::size_t i = 0; i < scaled(2000); ++i) {
        const std::size_t offset = i * 4096 % text.size();
        ASSERT_EQ(i % 2 == 0 ? f.read_at(room, offset) : f.read_some_at(room, offset), room.size());
        ASSERT_EQ(room, text.substr(offset, room.size()));
      }
      char a[100];
      char b[7];
      const mutable_buffer two[] = {a, b};
      EXPECT_EQ(f.read_at(two, 50), 107U);
      EXPECT_EQ(hand_overs(rt), before);
      EXPECT_EQ(rt->statistics().parks, parks);
    });
  });
}

// req: IO-9
TEST_F(FileCache, a_read_that_is_not_cached_is_handed_over_once) {
  const path p = dir.with("f", "0123456789");
  at_worker_counts([&](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([&] {
      const file f = open_with(kernel_without_cache(), p);
      char room[10];
      for (const answer a : {answer{-1, EAGAIN}, answer{-1, EOPNOTSUPP}, answer{-1, ENOSYS}, answer{-1, EIO},
                             answer{0, 0}, answer{1, 0}, answer{9, 0}}) {
        attempt = a;
        attempts = others = 0;
        const std::uint64_t before = hand_overs(rt);
        std::fill(std::begin(room), std::end(room), '-');
        EXPECT_EQ(f.read_at(room, 0), 10U);
        EXPECT_EQ(std::string_view(room, 10), "0123456789") << a.count;
        EXPECT_EQ(hand_overs(rt) - before, 1U);
        EXPECT_EQ(attempts.load(), 1);
        EXPECT_EQ(others.load(), 1);
      }
    });
  });
}

TEST_F(FileCache, a_part_that_is_cached_will_do_for_some) {
  const path p = dir.with("f", "0123456789");
  watched_runtime rt(1);
  rt->run([&] {
    const file f = open_with(kernel_without_cache(), p);
    attempt = {3, 0};
    const std::uint64_t before = hand_overs(rt);
    char room[10];
    EXPECT_EQ(f.read_some_at(room, 4), 3U);
    EXPECT_EQ(std::string_view(room, 3), "456");
    EXPECT_EQ(hand_overs(rt), before);
    attempt = {};
    EXPECT_EQ(f.read_some_at(room, 4), 6U);
    EXPECT_EQ(hand_overs(rt), before + 1);
  });
}

TEST_F(FileCache, what_takes_long_to_copy_is_handed_over_at_once) {
  const std::string text = letters(1 << 20);
  const path p = dir.with("f", text);
  watched_runtime rt(1);
  rt->run([&] {
    const file f = open_with(kernel_without_cache(), p);
    std::string room(text.size(), '\0');
    attempts = 0;
    const std::uint64_t before = hand_overs(rt);
    EXPECT_EQ(f.read_at(room, 0), room.size());
    EXPECT_EQ(room, text);
    EXPECT_EQ(attempts.load(), 0);
    EXPECT_EQ(hand_overs(rt), before + 1);
  });
}

TEST_F(FileCache, an_outside_thread_just_reads) {
  const file f = open_with(kernel_without_cache(), dir.with("f", "text"));
  attempts = 0;
  char room[4];
  EXPECT_EQ(f.read_at(room, 0), 4U);
  EXPECT_EQ(attempts.load(), 0);
}

// req: IO-9
TEST_F(FileCache, what_the_cache_has_lost_is_read_from_the_disk) {
  const std::string text = letters(1 << 20);
  const path p = dir.with("f", text);
  at_worker_counts_in_a_task([&] {
    file f = file::open(p, {.write = true});
    f.sync();
    ::posix_fadvise(f.native_handle(), 0, 0, POSIX_FADV_DONTNEED);
    std::string room(128 << 10, '\0');
    for (std::size_t offset = 0; offset < text.size(); offset += room.size()) {
      ASSERT_EQ(f.read_at(room, offset), room.size());
      ASSERT_EQ(room, text.substr(offset, room.size()));
    }
  });
}

// req: IO-9
TEST_F(FileCache, a_misaligned_direct_read_is_an_error_and_an_aligned_one_works) {
  constexpr std::size_t block = 4096;
  const std::string text = letters(2 * block);
  const path p = dir.with("f", text);
  std::error_code refused;
  (void)file::open(p, {.direct = true}, refused);
  if (refused) GTEST_SKIP() << "this file system has no direct reads";
  in_thread_and_tasks([&] {
    const file f = file::open(p, {.direct = true});
    alignas(block) static char room[block];
    EXPECT_EQ(f.read_at(room, block), block);
    EXPECT_EQ(std::string_view(room, block), text.substr(block));
    std::error_code why;
    EXPECT_EQ(f.read_at(mutable_buffer(room + 1, 100), 3, why), 0U);
    EXPECT_EQ(why, std::errc::invalid_argument);
  });
}

// A task that only reads what is cached never parks. Others on its worker have their turns nevertheless.
TEST_F(FileCache, a_task_that_reads_on_and_on_lets_others_run) {
  const path p = dir.with("f", "text");
  support::watchdog guard(60s, "a task that reads on and on");
  watched_runtime rt(1);
  rt->run([&] {
    const file f = file::open(p);
    bool other_ran = false;
    auto other = weft::spawn([&] { other_ran = true; });
    char room[4];
    while (!other_ran) ASSERT_EQ(f.read_at(room, 0), 4U);
    other.join();
  });
}

// req: IO-9
TEST_F(FileCache, the_worker_goes_on_while_the_disk_is_waited_for) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool does not grow";
  static base::atomic<bool> other_ran;
  other_ran = false;
  static io::kernel_calls slow = io::real_kernel();
  slow.preadv2 = [](int fd, const iovec* to, int count, off_t offset, int flags) noexcept -> ssize_t {
    if ((flags & RWF_NOWAIT) != 0) return errno = EAGAIN, -1;
    support::hold_worker_until([] { return other_ran.load(); });
    return ::preadv2(fd, to, count, offset, flags);
  };
  const path p = dir.with("f", "text");
  support::watchdog guard(60s, "a slow disk");
  watched_runtime rt({.workers = 1});
  rt->run([&] {
    const file f = open_with(slow, p);
    auto other = weft::spawn([&] { other_ran = true; });
    char room[4];
    EXPECT_EQ(f.read_at(room, 0), 4U);
    other.join();
  });
}

}  // namespace
