// Pipes between tasks, and what happens when one end is gone.
#include <weft/pipe.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <thread>

#include "io/net.hpp"

namespace {

using namespace support::usual;
using namespace support;
using namespace weft;  // together with the C library's pipe(): nothing is ambiguous

// req: IO-1
TEST(Pipe, bytes_come_out_as_they_went_in) {
  with_sockets([] {
    auto [from, to] = make_pipe();
    const std::string sent = pattern(1 << 20);  // more than a pipe has room for
    auto writer = weft::spawn([&sent, w = std::move(to)]() mutable {
      w.write_all(sent);
      w.close();
    });
    EXPECT_EQ(read_to_end(from), sent);
    writer.join();
  });
}

TEST(Pipe, several_buffers_are_written_and_read_by_one_call) {
  with_sockets([] {
    auto [from, to] = make_pipe();
    to.write_all({const_buffer("ab"), const_buffer(""), const_buffer("cde")});
    char first[1], second[9];
    const std::array<mutable_buffer, 2> room{mutable_buffer(first), mutable_buffer(second)};
    EXPECT_EQ(from.read_some(room), 5u);
    EXPECT_EQ(std::string(first, 1) + std::string(second, 4), "abcde");
    to.close();
    EXPECT_EQ(from.read_some(room), 0u);
    std::error_code why;
    char too_much[4];
    EXPECT_EQ(from.read_exactly(too_much, why), 0u);
    EXPECT_EQ(why, io_errc::stream_ended);
  });
}

// The signal would end this process.
// req: IO-1
TEST(Pipe, a_write_that_nobody_can_read_is_broken_pipe_and_sends_no_signal) {
  const auto check = [] {
    auto [from, to] = make_pipe();
    from.close();
    std::error_code why;
    EXPECT_EQ(to.write_some("x", why), 0u);
    EXPECT_EQ(why, std::errc::broken_pipe);
    try {
      to.write_all({const_buffer("x"), const_buffer("y")});
      ADD_FAILURE() << "nobody can read it";
    } catch (const std::system_error& e) {
      EXPECT_EQ(e.code(), std::errc::broken_pipe);
      EXPECT_NE(std::string(e.what()).find("write to a pipe"), std::string::npos) << e.what();
    }
    sigset_t now;
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &now), 0);
    EXPECT_EQ(::sigismember(&now, SIGPIPE), 0) << "the mask is as before";
  };
  with_sockets(check);
  check();  // and on a thread
}

TEST(Pipe, a_signal_that_was_pending_before_stays_so) {
  std::thread([] {  // whose mask ends with it
    sigset_t one, pending;
    ::sigemptyset(&one);
    ::sigaddset(&one, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &one, nullptr);
    auto [from, to] = make_pipe();
    from.close();
    std::error_code why;
    (void)to.write_some("x", why);
    ::sigpending(&pending);
    EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0) << "ours is taken away";
    ::pthread_kill(::pthread_self(), SIGPIPE);
    (void)to.write_some("x", why);
    EXPECT_EQ(why, std::errc::broken_pipe);
    ::sigpending(&pending);
    EXPECT_EQ(::sigismember(&pending, SIGPIPE), 1) << "the other is not ours";
    const timespec at_once{};
    EXPECT_EQ(::sigtimedwait(&one, nullptr, &at_once), SIGPIPE);
  })
      .join();
}

TEST(Pipe, a_writer_that_waits_is_told_when_the_reader_goes) {
  with_sockets([] {
    auto [from, to] = make_pipe();
    auto writer = weft::spawn([&w = to] { return error_of([&] { w.write_all(std::string(1 << 20, 'x')); }); });
    char room[8];
    from.read_exactly(room);
    from.close();
    EXPECT_EQ(writer.join(), std::errc::broken_pipe);
  });
}

// req: IO-2 IO-3
TEST(Pipe, time_limits_cancellation_and_close_end_a_wait) {
  with_sockets([] {
    auto [from, to] = make_pipe();
    char room[8];
    EXPECT_EQ(error_of([&room, &f = from] { (void)f.read_some_for(1ms, room); }), std::errc::timed_out);
    const std::string much(1 << 20, 'x');
    std::error_code why;
    const std::size_t fits = to.write_all_until(weft::detail::time_after(1ms), much, why);
    EXPECT_EQ(why, std::errc::timed_out);
    EXPECT_GT(fits, 0u);

    auto [quiet, other] = make_pipe();
    auto cancelled = weft::spawn([&r = quiet] { return read_to_end(r); });
    auto closed = weft::spawn([&r = quiet] { return error_of([&] { (void)read_to_end(r); }); });
    auto closed_writer = weft::spawn([&w = to] { return error_of([&] { w.write_all("y"); }); });
    weft::sleep_for(1ms);
    cancelled.cancel();
    EXPECT_THROW(cancelled.join(), weft::task_cancelled);
    quiet.close();
    EXPECT_EQ(closed.join(), std::errc::operation_canceled);
    to.close();
    EXPECT_EQ(closed_writer.join(), std::errc::operation_canceled);
    EXPECT_EQ(read_to_end(from).size(), fits) << "what was written can still be read";
  });
}

// req: IO-4
TEST(Pipe, both_ends_are_arms) {
  with_sockets([] {
    auto [from, to] = make_pipe();
    EXPECT_EQ(weft::prialt(from.readable(), weft::otherwise).index(), 1u);
    EXPECT_EQ(weft::prialt(to.writable(), weft::otherwise).index(), 0u);
    auto writer = weft::spawn([&w = to] { w.write_all("x"); });
    auto limit = weft::after(60s);
    bool is_told = false;
    EXPECT_EQ(weft::select(limit, from.on_readable([&] { is_told = true; })).index(), 1u);
    EXPECT_TRUE(is_told);
    writer.join();
    char room[8];
    EXPECT_EQ(from.read_some(room), 1u);
    to.close();
    EXPECT_EQ(weft::select(limit, from.readable()).index(), 1u) << "the end";
  });
}

TEST(Pipe, outside_threads_use_it_too) {
  const std::size_t before = open_descriptors();
  {
    auto [from, to] = make_pipe();
    const std::string sent = pattern(300'000);
    std::thread writer([&w = to, &sent] {
      w.write_all(sent);
      w.close();
    });
    EXPECT_EQ(read_to_end(from), sent);
    writer.join();
  }
  EXPECT_EQ(open_descriptors(), before);
}

// Not under ASan: UBSan needs a descriptor itself to look at an object.
// req: IO-13
TEST(PipeNoAsan, a_lack_of_descriptors_is_an_error_of_the_call) {
  with_sockets([] {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    std::error_code why;
    const pipe_ends ends = make_pipe(why);
    const std::error_code thrown = error_of([] { (void)make_pipe(); });
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(why, std::errc::too_many_files_open);
    EXPECT_EQ(thrown, std::errc::too_many_files_open);
    EXPECT_FALSE(ends.reader.is_open());
    EXPECT_THROW(ends.writer.write_all("x"), weft::usage_error);
  });
}

TEST(Pipe, the_end_of_a_fifo_can_be_adopted_and_released) {
  with_sockets([] {
    const std::string name = std::filesystem::temp_directory_path() / ("weft-fifo-" + std::to_string(::getpid()));
    ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
    const int both = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
    auto reader = pipe_reader::adopt(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
    auto writer = pipe_writer::adopt(::open(name.c_str(), O_WRONLY | O_CLOEXEC));
    ::close(both);
    ::unlink(name.c_str());
    auto reads = weft::spawn([&] { return read_to_end(reader); });
    writer.write_all("through a name");
    ::close(writer.release());
    EXPECT_EQ(reads.join(), "through a name");
    EXPECT_EQ(error_of([] { (void)pipe_reader::adopt(-1); }), std::errc::bad_file_descriptor);
  });
}

}  // namespace
