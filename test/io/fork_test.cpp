// A task forks while sockets are open and others wait for them: the child can exec, and the parent does not notice.
// ctest: uring
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "io/faults.hpp"

namespace {

using namespace support::usual;
using namespace support;

// What a child says on a pipe before it leaves.
template <class InChild>
std::string said_by_child(InChild in_child) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);  // a child that hangs fails the test instead of stopping it
    in_child(ends[1]);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said;
  char room[512];
  for (ssize_t n = 0; (n = ::read(ends[0], room, sizeof room)) > 0;) said.append(room, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) said += " [status " + std::to_string(status) + "]";
  return said;
}
void say(int fd, const std::string& text) { (void)!::write(fd, text.data(), text.size()); }

// A pair whose server has a reader that waits, and which echoes.
struct echoed {
  tcp_pair pair = connected_pair();
  weft::join_handle<void> echo = spawn_and_park([s = &pair.server] {
    char room[16];
    while (const std::size_t n = s->read_some(room)) s->write_all({room, n});
  });
  void is_unharmed() const {
    char room[4];
    pair.client.write_all("ping");
    pair.client.read_exactly(room);
    EXPECT_EQ(std::string(room, 4), "ping");
  }
  void end() {
    pair.client.close();
    echo.join();
  }
};

// req: W-8
TEST(Fork, a_child_of_a_task_with_sockets_can_exec_and_has_none_of_them) {
  with_sockets([] {
    echoed e;
    const std::string number = std::to_string(e.pair.server.native_handle());
    const std::string said = said_by_child([&](int fd) {
      ::dup2(fd, 1);
      ::execl("/bin/sh", "sh", "-c", "test -e /proc/self/fd/$0 && echo inherited || echo gone", number.c_str(),
              nullptr);
    });
    EXPECT_EQ(said, "gone\n");
    e.is_unharmed();
    e.end();
  });
}

// req: W-8
TEST(Fork, a_child_that_closes_what_it_has_inherited_does_not_disturb_the_parent) {
  with_sockets([] {
    echoed e;
    EXPECT_EQ(said_by_child([&](int fd) {
                e.pair.server.close();
                e.pair.client.close();
                say(fd, "closed");
              }),
              "closed");
    e.is_unharmed();
    e.end();
  });
}

// req: W-8
TEST(Fork, a_child_that_uses_a_socket_of_the_parents_task_is_refused_with_words) {
  with_sockets([] {
    echoed e;
    e.pair.client.write_all("x");
    until_buffered(e.pair.client, 1);
    const std::string said = said_by_child([&](int fd) {
      const auto complaint = [&](auto call) {
        try {
          call();
          say(fd, "no exception;");
        } catch (const weft::usage_error& error) {
          say(fd, std::string(error.what()).find("fork") != std::string::npos ? "refused;" : error.what());
        } catch (const std::exception& error) {
          say(fd, error.what());
        }
      };
      char room[8];
      complaint([&] { (void)e.pair.client.read_some(room); });
      complaint([&] { e.pair.client.write_all("y"); });
      complaint([&] { (void)e.pair.server.read_some(room); });
      complaint([&] { (void)net::tcp_listener(net::endpoint::loopback(0)).local_endpoint(); });
    });
    EXPECT_EQ(said, "refused;refused;refused;no exception;") << "a socket of its own it may use";
    char room[1];
    e.pair.client.read_exactly(room);
    EXPECT_EQ(room[0], 'x') << "the child has taken nothing";
    e.is_unharmed();
    e.end();
  });
}

}  // namespace
