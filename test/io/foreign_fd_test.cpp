// What libraries do with their descriptors behind Weft's back: duplicates, several who wait for one number, and numbers
// that are closed and stand for another open file a moment later.
#include <weft/descriptor.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "io/net.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/net/unix.hpp>

namespace {

using namespace support::usual;
using namespace support;

// Both ends of a connection as a library has them: plain numbers.
class numbers {
 public:
  int here = -1, there = -1;
  numbers() {
    int both[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both) == 0)
      here = both[0], there = both[1];
  }
  ~numbers() { close(); }
  numbers(const numbers&) = delete;
  numbers& operator=(const numbers&) = delete;

  void close() noexcept {
    if (here >= 0) ::close(std::exchange(here, -1));
    if (there >= 0) ::close(std::exchange(there, -1));
  }
  // Closes both ends and opens another connection, whose end here has the same number.
  void open_again() {
    numbers other;
    // In one step, because another thread of the process, the monitor's for one, may open something in between.
    ASSERT_EQ(::dup3(other.here, here, O_CLOEXEC), here);
    ::close(std::exchange(there, std::exchange(other.there, -1)));
  }
  void send(std::string_view what = "x") const {
    EXPECT_EQ(::write(there, what.data(), what.size()), static_cast<ssize_t>(what.size()));
  }
  [[nodiscard]] char take() const {
    char c = 0;
    EXPECT_EQ(::read(here, &c, 1), 1);
    return c;
  }
};

// After a wait that has found nothing, the runtime watches the descriptor.
void make_watched(const weft::descriptor& d) { EXPECT_FALSE(d.wait_readable_for(100us)); }

// A task that calls f and waits in it by now.
template <class F>
[[nodiscard]] auto waiting_in(F f) {
  base::atomic<const weft::task::record*> who{nullptr};
  auto task = weft::spawn([&who, f] {
    who.store(weft::waits::current_task(), base::release);
    return f();
  });
  until([&] { return is_parked(who.load(base::acquire)); });
  return task;
}

// ---- the number stands for another open file ------------------------------------------------------------------------

// libpq closes its socket and opens another while it connects, and PQreset() does, too.
// req: IO-4
TEST(ForeignFd, a_number_that_was_opened_again_can_be_waited_for) {
  with_sockets([] {
    numbers n;
    const auto d = weft::descriptor::borrow(n.here);
    for (int round = 0; round < 20; ++round) {
      make_watched(d);
      n.open_again();
      auto reader = waiting_in([&] { d.wait_readable(); });
      n.send();
      reader.join();
      EXPECT_EQ(n.take(), 'x');
    }
  });
}

// req: IO-4
TEST(ForeignFd, a_number_that_was_opened_again_is_an_arm) {
  with_sockets([] {
    numbers n;
    const auto d = weft::descriptor::borrow(n.here);
    for (int round = 0; round < 20; ++round) {
      auto soon = weft::after(100us);
      EXPECT_EQ(weft::select(d.readable(), soon).index(), 1u);
      n.open_again();
      auto writer = weft::spawn([&] { n.send(); });
      auto late = weft::after(20s);
      EXPECT_EQ(weft::select(d.readable(), late).index(), 0u);
      writer.join();
      EXPECT_EQ(n.take(), 'x');
    }
  });
}

// The second of two who wait for a number watches a duplicate, which would still be the old file.
TEST(ForeignFd, so_it_is_for_the_second_who_waits_for_the_number) {
  with_sockets([] {
    numbers n;
    const auto first = weft::descriptor::borrow(n.here);
    const auto second = weft::descriptor::borrow(n.here);
    for (int round = 0; round < 20; ++round) {
      make_watched(first);
      make_watched(second);
      n.open_again();
      auto a = waiting_in([&] { first.wait_readable(); });
      auto b = waiting_in([&] { second.wait_readable(); });
      n.send();
      a.join();
      b.join();
      EXPECT_EQ(n.take(), 'x');
    }
  });
}

// A library that closes its descriptor too early must not harm others, whose descriptor got that number.
// req: IO-3
TEST(ForeignFd, the_end_of_a_borrowed_descriptor_does_not_end_the_watch_of_a_stranger) {
  with_sockets([] {
    for (int round = 0; round < 50; ++round) {
      numbers library;
      auto d = weft::descriptor::borrow(library.here);
      make_watched(d);
      const int number = library.here;
      library.close();
      numbers connection;  // gets the number
      if (connection.here != number) std::swap(connection.here, connection.there);
      EXPECT_EQ(connection.here, number);
      const auto stranger = net::unix_stream::adopt(std::exchange(connection.here, -1));
      auto reader = waiting_in([&] {
        char c = 0;
        stranger.read_exactly({&c, 1});
        return c;
      });
      d.close();
      connection.send("y");
      EXPECT_EQ(reader.join(), 'y');
    }
  });
}

// req: IO-4 IO-13
TEST(ForeignFd, a_number_that_was_closed_is_an_error_and_not_ready) {
  with_sockets([] {
    numbers n;
    const auto fresh = weft::descriptor::borrow(n.here);
    const auto known = weft::descriptor::borrow(n.here);
    make_watched(known);
    n.close();
    for (const weft::descriptor* d : {&fresh, &known}) {
      EXPECT_EQ(error_of([&] { d->wait_readable(); }), std::errc::bad_file_descriptor);
      EXPECT_EQ(error_of([&] { (void)d->wait_writable_for(1s); }), std::errc::bad_file_descriptor);
      EXPECT_EQ(error_of([&] { weft::select(d->readable()); }), std::errc::bad_file_descriptor);
      std::error_code why;
      d->wait_readable(why);
      EXPECT_EQ(why, std::errc::bad_file_descriptor);
    }
  });
}

TEST(ForeignFd, outside_threads_are_told_that_a_number_was_closed) {
  const std::size_t before = open_descriptors();
  {
    numbers n;
    const auto d = weft::descriptor::borrow(n.here);
    n.close();
    EXPECT_EQ(error_of([&] { d.wait_readable(); }), std::errc::bad_file_descriptor);
  }
  EXPECT_EQ(open_descriptors(), before);
}

// ---- level-triggered ------------------------------------------------------------------------------------------------

// libpq reads less than there is and asks again; whoever waits must be told of the rest, though no edge comes any more.
// req: IO-4
TEST(ForeignFd, a_library_may_leave_a_part_unread) {
  with_sockets([] {
    const numbers n;
    const auto d = weft::descriptor::borrow(n.here);
    make_watched(d);
    n.send("abc");
    std::string got;
    for (int i = 0; i < 3; ++i) {
      d.wait_readable();
      auto late = weft::after(20s);
      EXPECT_EQ(weft::select(late, d.readable()).index(), 1u);
      got += n.take();
    }
    EXPECT_EQ(got, "abc");
    EXPECT_FALSE(d.wait_readable_for(100us));
  });
}

// Both directions of one descriptor at the same time, as libpq's PQflush needs it.
// req: IO-4
TEST(ForeignFd, both_directions_in_one_select) {
  with_sockets([] {
    const numbers n;
    const auto d = weft::descriptor::borrow(n.here);
    const std::string much(1 << 16, 'x');
    while (::write(n.here, much.data(), much.size()) > 0) {}  // until it is full
    auto other = weft::spawn([&] { n.send("r"); });
    EXPECT_EQ(weft::select(d.readable(), d.writable()).index(), 0u);
    other.join();
    EXPECT_EQ(n.take(), 'r');
    auto drain = weft::spawn([&] {
      std::string room(1 << 20, '\0');
      while (::read(n.there, room.data(), room.size()) > 0) {}
    });
    EXPECT_EQ(weft::select(d.readable(), d.writable()).index(), 1u);
    drain.join();
  });
}

// ---- duplicates -----------------------------------------------------------------------------------------------------

// Two numbers of one open file, each waited for on its own.
// req: IO-4
TEST(ForeignFd, duplicates_are_waited_for_side_by_side) {
  with_sockets([] {
    const numbers n;
    const int duplicate = ::fcntl(n.here, F_DUPFD_CLOEXEC, 0);
    ASSERT_GE(duplicate, 0);
    {
      auto other = weft::descriptor::own(duplicate);
      auto a = waiting_in([&] { weft::wait_readable(n.here); });
      auto b = waiting_in([&] { other.wait_readable(); });
      n.send();
      a.join();
      b.join();
      EXPECT_EQ(n.take(), 'x');
      make_watched(other);
    }
    n.send();  // the duplicate has gone, and its events with it
    weft::wait_readable(n.here);
  });
}

// The library closes its number, and a duplicate keeps the file open: the kernel still tells of its events.
TEST(ForeignFd, events_of_a_file_that_lives_on_in_a_duplicate_reach_nobody) {
  with_sockets([] {
    for (int round = 0; round < 20; ++round) {
      numbers n;
      const int duplicate = ::fcntl(n.here, F_DUPFD_CLOEXEC, 0);
      ASSERT_GE(duplicate, 0);
      {
        const auto d = weft::descriptor::borrow(n.here);
        make_watched(d);
        ::close(std::exchange(n.here, -1));
      }
      numbers next;  // its record and its number are those of the old one
      const auto d = weft::descriptor::borrow(next.here);
      n.send();
      auto soon = weft::after(100us);
      EXPECT_EQ(weft::select(d.readable(), soon).index(), 1u) << "there is nothing to read";
      ::close(duplicate);
    }
  });
}

// ---- many at once ---------------------------------------------------------------------------------------------------

// A loop over the descriptors of a library, which come and go with the same numbers, as those of libcurl do.
// req: IO-4
TEST(ForeignFd, a_loop_selects_over_many_that_come_and_go) {
  with_sockets([] {
    constexpr std::size_t width = 40;
    std::vector<numbers> all(width);
    std::vector<weft::descriptor> watched;
    for (const numbers& n : all) watched.push_back(weft::descriptor::borrow(n.here));
    for (std::size_t round = 0; round < 100; ++round) {
      const std::size_t which = round * 17 % width;
      auto writer = weft::spawn([&] { all[which].send(); });
      std::vector<net::ready_arm> arms;
      for (const auto& d : watched) arms.push_back(d.readable());
      EXPECT_EQ(weft::select(arms).index(), which);
      writer.join();
      EXPECT_EQ(all[which].take(), 'x');
      watched[which].close();
      all[which].open_again();
      watched[which] = weft::descriptor::borrow(all[which].here);
    }
  });
}

}  // namespace
