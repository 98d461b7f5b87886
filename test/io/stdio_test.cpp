// The standard streams, and other descriptors that are shared with processes that expect them to block.
#include <weft/stdio.hpp>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "io/fd_record.hpp"
#include "io/kernel.hpp"
#include "io/net.hpp"

namespace {

using namespace support::usual;
using namespace support;
using weft::input_stream;
using weft::output_stream;

// Two descriptors that block, as a process inherits them, and whose flags must be the same at the end.
class inherited {
 public:
  inherited(int reader, int writer)
      : from(reader),
        to(writer),
        flags_from_(::fcntl(reader, F_GETFL)),
        flags_to_(::fcntl(writer, F_GETFL)) {}
  ~inherited() {
    if (to >= 0) {
      EXPECT_EQ(::fcntl(to, F_GETFL), flags_to_);
    }
    EXPECT_EQ(::fcntl(from, F_GETFL), flags_from_);
    end();
    ::close(from);
  }
  inherited(const inherited&) = delete;
  inherited& operator=(const inherited&) = delete;
  void end() {
    if (to >= 0) ::close(to);
    to = -1;
  }

  [[nodiscard]] static inherited pipe() {
    int both[2];
    if (::pipe2(both, O_CLOEXEC) != 0) std::abort();
    return {both[0], both[1]};
  }
  [[nodiscard]] static inherited sockets() {
    int both[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) != 0) std::abort();
    return {both[0], both[1]};
  }
  // A terminal is `from`, and who sits before it is `to`.
  [[nodiscard]] static inherited terminal() {
    const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0) std::abort();
    return {::open(::ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC), master};
  }

  const int from;
  int to;

 private:
  const int flags_from_, flags_to_;
};

// While it lives, one of the numbers 0, 1 and 2 means another descriptor; with -1, none.
class standing_in {
 public:
  standing_in(int number, int other) : number_(number), saved_(::fcntl(number, F_DUPFD_CLOEXEC, 10)) {
    std::fflush(nullptr);
    if (other < 0)
      ::close(number);
    else
      ::dup2(other, number);
  }
  ~standing_in() {
    ::dup2(saved_, number_);
    ::close(saved_);
  }
  standing_in(const standing_in&) = delete;
  standing_in& operator=(const standing_in&) = delete;

 private:
  const int number_, saved_;
};

void say(int fd, std::string_view text) {
  EXPECT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

// req: IO-1
TEST(Stdio, flags_of_a_shared_pipe_do_not_change_and_only_the_task_waits) {
  with_sockets([] {
    auto p = inherited::pipe();
    const auto in = input_stream::borrow(p.from);
    const auto out = output_stream::borrow(p.to);
    const std::string sent = pattern(1 << 20);  // one that waited on its worker would wait for ever at one worker
    auto reader = weft::spawn([&] { return read_to_end(in); });
    weft::sleep_for(1ms);
    out.write_all(sent);
    p.end();
    EXPECT_EQ(reader.join(), sent);
  });
}

TEST(Stdio, a_socket_works_too) {
  with_sockets([] {
    auto p = inherited::sockets();
    const std::string sent = pattern(1 << 20);
    auto reader = weft::spawn([&] { return read_to_end(input_stream::borrow(p.from)); });
    output_stream::borrow(p.to).write_all(sent);
    p.end();
    EXPECT_EQ(reader.join(), sent);
  });
}

// A kernel whose pipes do not know RWF_NOWAIT, as before Linux 6.4.
TEST(Stdio, a_pipe_of_an_older_kernel_is_written_in_portions_that_fit) {
  static const weft::io::kernel_calls older = [] {
    weft::io::kernel_calls k = weft::io::real_kernel();
    k.preadv2 = [](int fd, const iovec* to, int count, off_t at, int flags) noexcept -> ssize_t {
      if ((flags & RWF_NOWAIT) != 0) return errno = EOPNOTSUPP, -1;
      return ::preadv2(fd, to, count, at, flags);
    };
    k.pwritev2 = [](int fd, const iovec* from, int count, off_t at, int flags) noexcept -> ssize_t {
      if ((flags & RWF_NOWAIT) != 0) return errno = EOPNOTSUPP, -1;
      return ::pwritev2(fd, from, count, at, flags);
    };
    return k;
  }();
  with_sockets([] {
    auto p = inherited::pipe();
    constexpr weft::io::fd_traits shared{.kind = weft::io::fd_kind::shared_pipe, .borrowed = true};
    const weft::io::fd_handle in(weft::io::fd_record::take_over(p.from, older, shared));
    const weft::io::fd_handle out(weft::io::fd_record::take_over(p.to, older, shared));
    const std::string sent = pattern(300'000);
    auto writer = weft::spawn([&] {
      std::error_code why;
      EXPECT_EQ(weft::io::write_all(out.record(), weft::const_buffer(sent), {}, why), sent.size());
    });
    std::string got(sent.size(), '\0');
    std::error_code why;
    EXPECT_EQ(weft::io::read_exactly(in.record(), got, {}, why), sent.size()) << why.message();
    EXPECT_EQ(got, sent);
    writer.join();
  });
}

// req: IO-1
TEST(Stdio, a_terminal_is_read_line_by_line_and_keeps_its_settings) {
  with_sockets([] {
    const auto t = inherited::terminal();
    termios before{}, after{};
    ASSERT_EQ(::tcgetattr(t.from, &before), 0);
    const auto in = input_stream::borrow(t.from);
    auto reader = weft::spawn([&] {
      char room[64];
      const std::size_t n = in.read_some(room);
      return std::string(room, n);
    });
    weft::sleep_for(1ms);
    say(t.to, "no line yet");
    weft::sleep_for(1ms);
    say(t.to, ", and now one\n");
    EXPECT_EQ(reader.join(), "no line yet, and now one\n");
    say(t.to, "\4");  // the end of the input, as typed
    char room[64];
    EXPECT_EQ(in.read_some(room), 0u);
    EXPECT_EQ(error_of([&] { (void)in.read_some_for(1ms, room); }), std::errc::timed_out);

    output_stream::borrow(t.from).write_all("shown");
    ASSERT_EQ(::tcgetattr(t.from, &after), 0);
    EXPECT_EQ(after.c_lflag, before.c_lflag);
    EXPECT_EQ(after.c_iflag, before.c_iflag);
    EXPECT_EQ(after.c_oflag, before.c_oflag);
  });
}

// A write to a terminal may block although poll(2) said that it is ready. Then its worker is replaced, if the pool may grow.
// req: IO-1
TEST(Stdio, a_terminal_that_is_slow_keeps_only_the_task_that_writes) {
  const watchdog guard(60s, "a slow terminal");
  const std::size_t before = open_descriptors();
  {
    watched_runtime rt(weft::runtime_options{.workers = 1});
    rt->run([] {
      const auto t = inherited::terminal();
      const std::string much(300'000, 'x');  // more than it has room for
      auto writer = weft::spawn([&] { output_stream::borrow(t.from).write_all(much); });
      const auto screen = input_stream::borrow(t.to);
      char room[4096];
      std::size_t seen = 0;
      while (seen < much.size()) {
        const std::size_t n = screen.read_some(room);
        for (const char c : std::string_view(room, n)) seen += c == 'x' ? 1 : 0;
      }
      writer.join();
    });
  }
  EXPECT_EQ(open_descriptors(), before);
}

// req: IO-1
TEST(Stdio, a_regular_file_and_dev_null_are_streams_too) {
  with_sockets([] {
    std::FILE* file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    const std::string sent = pattern(100'000);
    output_stream::borrow(::fileno(file)).write_all({weft::const_buffer("head "), weft::const_buffer(sent)});
    ASSERT_EQ(::lseek(::fileno(file), 0, SEEK_SET), 0);
    const auto in = input_stream::borrow(::fileno(file));
    EXPECT_EQ(weft::prialt(in.readable(), weft::otherwise).index(), 0u);
    EXPECT_EQ(read_to_end(in), "head " + sent);
    std::fclose(file);

    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ASSERT_GE(null, 0);
    EXPECT_EQ(read_to_end(input_stream::borrow(null)), "");
    output_stream::borrow(null).write_all(sent);
    ::close(null);
  });
}

// req: IO-1
TEST(Stdio, the_standard_streams_are_the_numbers_0_1_and_2) {
  with_sockets([] {
    auto in = inherited::pipe();
    auto out = inherited::pipe();
    auto err = inherited::pipe();
    {
      const standing_in zero(0, in.from), one(1, out.to), two(2, err.to);
      auto reader = weft::spawn([] {
        char room[8];
        const std::size_t n = weft::stdin_stream().read_some(room);
        return std::string(room, n);
      });
      weft::sleep_for(1ms);
      say(in.to, "ask");
      weft::stdout_stream().write_all("answer");
      weft::stderr_stream().write_all("complaint");
      EXPECT_EQ(reader.join(), "ask");
    }
    out.end();
    err.end();
    EXPECT_EQ(read_to_end(input_stream::borrow(out.from)), "answer");
    EXPECT_EQ(read_to_end(input_stream::borrow(err.from)), "complaint");
  });
}

// req: IO-13
TEST(Stdio, a_process_without_standard_input_is_told) {
  const standing_in none(0, -1);
  try {
    (void)weft::stdin_stream();
    ADD_FAILURE() << "there is none";
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), std::errc::bad_file_descriptor);
    EXPECT_NE(std::string(e.what()).find("standard input"), std::string::npos) << e.what();
  }
}

// req: IO-2 IO-3
TEST(Stdio, time_limits_cancellation_and_close_end_a_wait_and_the_descriptor_stays_open) {
  with_sockets([] {
    auto p = inherited::pipe();
    auto in = input_stream::borrow(p.from);
    in.expires_after(1ms);
    EXPECT_EQ(error_of([&] { (void)read_to_end(in); }), std::errc::timed_out);
    in.expires_never();
    auto cancelled = weft::spawn([&] { return read_to_end(in); });
    auto closed = weft::spawn([&] { return error_of([&] { (void)read_to_end(in); }); });
    weft::sleep_for(1ms);
    cancelled.cancel();
    EXPECT_THROW(cancelled.join(), weft::task_cancelled);
    in.close();
    EXPECT_EQ(closed.join(), std::errc::operation_canceled);
    say(p.to, "x");
    char c = 0;
    EXPECT_EQ(::read(p.from, &c, 1), 1) << "it was only borrowed";
  });
}

// req: IO-1
TEST(Stdio, output_that_nobody_reads_is_broken_pipe_and_sends_no_signal) {
  const auto check = [] {
    int both[2];
    ASSERT_EQ(::pipe2(both, O_CLOEXEC), 0);
    ::close(both[0]);
    EXPECT_EQ(error_of([&] { output_stream::borrow(both[1]).write_all("x"); }), std::errc::broken_pipe);
    ::close(both[1]);
  };
  with_sockets(check);
  check();
}

TEST(Stdio, several_readers_of_one_pipe_share_what_comes) {
  with_sockets([] {
    auto p = inherited::pipe();
    constexpr int readers = 3;
    std::vector<weft::join_handle<std::size_t>> all;
    for (int i = 0; i < readers; ++i)
      all.push_back(weft::spawn([&] { return read_to_end(input_stream::borrow(p.from)).size(); }));
    for (int i = 0; i < 100; ++i) {
      say(p.to, "0123456789");
      weft::yield();
    }
    p.end();
    std::size_t sum = 0;
    for (auto& r : all) sum += r.join();
    EXPECT_EQ(sum, 1000u);
  });
}

TEST(Stdio, outside_threads_use_it_too) {
  auto p = inherited::pipe();
  std::thread writer([&] {
    output_stream::borrow(p.to).write_all(pattern(300'000));
    p.end();
  });
  EXPECT_EQ(read_to_end(input_stream::borrow(p.from)), pattern(300'000));
  writer.join();
}

}  // namespace
