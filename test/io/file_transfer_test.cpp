// Reads and writes that take several kernel calls, or fail in between: every byte and every count is exact.
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <span>

#include "io/files.hpp"

namespace {

using namespace file_test;
using FileTransfer = leaves_no_descriptor;

// The kernel transfers at most so many bytes in the next call, and in all others.
struct limits {
  std::size_t first = SIZE_MAX;
  std::size_t others = SIZE_MAX;
  int calls = 0;
} limited;

// As many of the vectors as the limit allows; the last one may be cut off.
std::vector<iovec> cut(const iovec* from, int count) {
  std::size_t left = limited.calls++ == 0 ? limited.first : limited.others;
  std::vector<iovec> v(from, from + count);
  for (iovec& i : v) {
    i.iov_len = std::min(i.iov_len, left);
    left -= i.iov_len;
  }
  return v;
}

const io::kernel_calls& short_kernel() {
  static const io::kernel_calls calls = [] {
    io::kernel_calls k = io::real_kernel();
    k.preadv2 = [](int fd, const iovec* to, int count, off_t offset, int flags) noexcept {
      const std::vector<iovec> v = cut(to, count);
      return ::preadv2(fd, v.data(), count, offset, flags);
    };
    k.pwritev2 = [](int fd, const iovec* from, int count, off_t offset, int flags) noexcept {
      const std::vector<iovec> v = cut(from, count);
      return ::pwritev2(fd, v.data(), count, offset, flags);
    };
    return k;
  }();
  return calls;
}

// Buffers of these sizes over a text, one after the other.
template <class Buffer, class Text>
std::vector<Buffer> split(Text& text, std::initializer_list<std::size_t> sizes) {
  std::vector<Buffer> all;
  std::size_t at = 0;
  for (const std::size_t size : sizes) {
    all.emplace_back(text.data() + at, size);
    at += size;
  }
  return all;
}

// req: IO-9
TEST_F(FileTransfer, every_short_count_leaves_each_byte_in_its_place) {
  const std::string text = letters(20);
  weft::run({.workers = 1}, [&] {
    file f = open_with(short_kernel(), dir / "f", for_writing);
    for (std::size_t first = 1; first <= text.size(); ++first)
      for (const std::size_t others : {std::size_t{1}, std::size_t{4}, SIZE_MAX}) {
        f.truncate(0);
        limited = {first, others};
        f.write_all_at(split<const_buffer>(text, {0, 3, 1, 0, 9, 7}), 5);
        EXPECT_EQ(fs::read_file(dir / "f"), std::string(5, '\0') + text) << first << ", then " << others;
        std::string got(text.size(), '-');
        limited = {first, others};
        EXPECT_EQ(f.read_at(split<mutable_buffer>(got, {2, 0, 0, 10, 1, 7, 0}), 5), text.size());
        EXPECT_EQ(got, text) << first << ", then " << others;
      }
  });
}

// req: IO-9
TEST_F(FileTransfer, some_is_one_call) {
  in_thread_and_tasks([&] {
    file f = open_with(short_kernel(), dir / "f", for_writing);
    limited = {3, 3};
    EXPECT_EQ(f.write_some_at("abcdef", 0), 3U);
    EXPECT_EQ(limited.calls, 1);
    f.write_all_at("abcdef", 0);
    char room[6] = {};
    EXPECT_EQ(f.read_some_at(room, 1), 3U);
    EXPECT_EQ(std::string_view(room, 3), "bcd");
  });
}

// More vectors than the kernel takes in one call.
// req: IO-9
TEST_F(FileTransfer, any_number_of_buffers_will_do) {
  in_thread_and_tasks([&] {
    constexpr std::size_t count = 5000;
    const std::string text = letters(count * 2);
    std::vector<const_buffer> from;
    for (std::size_t i = 0; i < count; ++i) from.emplace_back(text.data() + 2 * i, 2);
    file f = file::open(dir / "f", {.write = true, .create = true, .truncate = true});
    f.write_all_at(from, 0);
    EXPECT_EQ(fs::read_file(dir / "f"), text);
    std::string got(text.size(), '-');
    std::vector<mutable_buffer> to;
    for (std::size_t i = 0; i < count; ++i) to.emplace_back(got.data() + 2 * i, 2);
    EXPECT_EQ(f.read_at(to, 0), text.size());
    EXPECT_EQ(got, text);
    EXPECT_GT(f.read_some_at(to, 0), 0U);
  });
}

TEST_F(FileTransfer, empty_buffers_before_the_others_are_not_the_end) {
  in_thread_and_tasks([&] {
    file f = file::open(dir.with("f", "text"), {.write = true});
    char room[4] = {};
    std::vector<mutable_buffer> to(3000, mutable_buffer(nullptr, 0));
    to.emplace_back(room);
    EXPECT_EQ(f.read_some_at(to, 0), 4U);
    EXPECT_EQ(f.read_at(to, 0), 4U);
    std::vector<const_buffer> from(3000, const_buffer(nullptr, 0));
    from.emplace_back("TE");
    f.write_all_at(from, 0);
    EXPECT_EQ(fs::read_file(dir / "f"), "TExt");
  });
}

// The kernel transfers at most 2 GiB less a page in one call.
// req: IO-9
TEST_F(FileTransfer, buffers_beyond_two_gigabytes_take_several_calls) {
  constexpr std::size_t size = (std::size_t{5} << 30) + 7;
  static constexpr std::size_t most = 0x7ffff000;
  static std::size_t asked_for;
  static io::kernel_calls huge = io::real_kernel();
  const auto transfer = [](int, const iovec* v, int count, off_t, int) noexcept -> ssize_t {
    std::size_t sum = 0;
    for (int i = 0; i < count; ++i) sum += v[i].iov_len;
    const std::size_t n = std::min(sum, most);
    asked_for += n;
    return static_cast<ssize_t>(n);
  };
  huge.preadv2 = huge.pwritev2 = transfer;
  const reserved_memory memory(size);
  in_thread_and_tasks([&] {
    file f = open_with(huge, dir / "f", for_writing);
    asked_for = 0;
    EXPECT_EQ(f.read_at(memory.all(), 0), size);
    EXPECT_EQ(asked_for, size);
    f.write_all_at(memory.all(), 0);
    EXPECT_EQ(asked_for, 2 * size);
    EXPECT_EQ(f.write_some_at(memory.all(), 0), most);
    const file real = file::open(dir.with("small", "text"));
    EXPECT_EQ(real.read_at(memory.all(), 0), 4U);
    EXPECT_EQ(real.read_some_at(memory.all(), 1), 3U);
  });
}

TEST_F(FileTransfer, a_call_that_a_signal_interrupts_is_made_again) {
  static int interruptions;
  static io::kernel_calls nervous = io::real_kernel();
  nervous.preadv2 = [](int fd, const iovec* to, int count, off_t offset, int flags) noexcept -> ssize_t {
    if (++interruptions % 3 != 0) return errno = EINTR, -1;
    return ::preadv2(fd, to, count, offset, flags);
  };
  nervous.open = [](const char* p, int flags, mode_t permissions) noexcept {
    if (++interruptions % 3 != 0) return errno = EINTR, -1;
    return ::open(p, flags, permissions);
  };
  nervous.fsync = [](int fd) noexcept {
    if (++interruptions % 3 != 0) return errno = EINTR, -1;
    return ::fsync(fd);
  };
  in_thread_and_tasks([&] {
    file f = open_with(nervous, dir.with("f", "text"), {.write = true});
    char room[4] = {};
    EXPECT_EQ(f.read_at(room, 0), 4U);
    f.sync();
  });
}

// The kernel fails after 10 bytes.
// req: IO-13
TEST_F(FileTransfer, the_count_before_an_error_is_exact) {
  static std::size_t left;
  static io::kernel_calls failing = io::real_kernel();
  failing.preadv2 = [](int fd, const iovec* to, int, off_t offset, int) noexcept -> ssize_t {
    if (left == 0) return errno = EIO, -1;
    const std::size_t n = std::min<std::size_t>({left, 3, to->iov_len});
    left -= n;
    return ::pread(fd, to->iov_base, n, offset);
  };
  failing.pwritev2 = [](int fd, const iovec* from, int, off_t offset, int) noexcept -> ssize_t {
    if (left == 0) return errno = ENOSPC, -1;
    const std::size_t n = std::min<std::size_t>({left, 3, from->iov_len});
    left -= n;
    return ::pwrite(fd, from->iov_base, n, offset);
  };
  in_thread_and_tasks([&] {
    const std::string text = letters(40);
    file f = open_with(failing, dir / "f", for_writing);
    f.truncate(0);
    std::error_code why;
    left = 10;
    EXPECT_EQ(f.write_all_at(text, 0, why), 10U);
    EXPECT_EQ(why, std::errc::no_space_on_device);
    EXPECT_EQ(support::file_text(dir / "f"), text.substr(0, 10));
    f.truncate(40);
    char room[40] = {};
    left = 10;
    EXPECT_EQ(f.read_at(room, 0, why), 10U);
    EXPECT_EQ(why, std::errc::io_error);
    EXPECT_EQ(std::string_view(room, 10), text.substr(0, 10));
    fs::writer out(f);
    left = 10;
    EXPECT_EQ(out.write_all(text, why), 10U);
    EXPECT_EQ(out.position(), 10U);
  });
}

TEST_F(FileTransfer, a_kernel_that_writes_nothing_is_not_asked_for_ever) {
  static io::kernel_calls idle = io::real_kernel();
  idle.pwritev2 = [](int, const iovec*, int, off_t, int) noexcept -> ssize_t { return 0; };
  file f = open_with(idle, dir / "f", for_writing);
  (void)message_of([&] { f.write_all_at("x", 0); }, std::errc::io_error);
}

// req: IO-13
TEST_F(FileTransfer, a_full_disk_is_told_with_the_exact_count) {
  in_thread_and_tasks([&] {
    file full = file::open("/dev/full", {.write = true});
    std::error_code why;
    EXPECT_EQ(full.write_all_at("x", 0, why), 0U);
    EXPECT_EQ(why, std::errc::no_space_on_device);
    EXPECT_EQ(message_of([&] { full.write_all_at("x", 0); }, std::errc::no_space_on_device),
              "weft: write \"/dev/full\": No space left on device");
  });
}

TEST_F(FileTransfer, a_file_at_its_limit_takes_what_fits) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  in_thread_and_tasks([&] {
    file f = file::open(dir / "f", {.write = true, .create = true, .truncate = true});
    std::error_code why;
    EXPECT_EQ(f.write_all_at(letters(3000), 0, why), 1000U);
    EXPECT_EQ(why, std::errc::file_too_large);
    EXPECT_EQ(f.size(), 1000U);
    EXPECT_EQ(f.write_some_at(letters(3000), 900), 100U);
  });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
}

}  // namespace
