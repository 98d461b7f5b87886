// The client of the echo benches, the same for all servers: one thread on epoll, 64-byte messages (bench/echo/README.md).
//
//     echo_client PORT [--udp | --unix] [--connections N] [--requests N] [--stick] [--compute N]
//                 [--rate PER_SECOND | --burst | --reconnect | --idle SECONDS]
//
// With --unix the port stands for the abstract name weft_echo.PORT. With --compute N every Nth message asks the server to
// compute for a while, and only the latencies of the others count.
//
// One line of JSON: requests per second and the latencies that the mode measures, in microseconds.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string_view>
#include <vector>

namespace {

constexpr int size = 64;

enum class transport { tcp, udp, local };

struct options {
  int port = 0;
  transport over = transport::tcp;
  std::size_t connections = 64;
  std::size_t requests = 300'000;
  double rate = 0;
  std::size_t compute = 0;  // every message of this number computes; 0: none
  bool burst = false, reconnect = false, stick = false;
  int idle = 0;
};

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

constexpr char plain = 'x', sticks = 's', computes = 'c';  // what the first byte of a message tells the server

// A connection with its unanswered messages.
struct connection {
  struct message {
    std::int64_t at;  // when it was, or should have been, sent
    bool counts;  // its latency
  };
  int fd = -1;
  std::deque<message> sent;
  int received = 0;

  void send(std::int64_t at, char mark = plain) {
    char bytes[size];
    std::memset(bytes, mark, size);
    if (::write(fd, bytes, size) != size) fail("write");
    sent.push_back({at, mark != computes});
  }
};

// Whether somebody answers at the other end of a UDP socket.
bool is_answered(int fd) {
  char bytes[size] = {};
  pollfd answer{fd, POLLIN, 0};
  return ::write(fd, bytes, size) == size && ::poll(&answer, 1, 1'000) == 1 && ::read(fd, bytes, size) == size;
}

int dial(const options& o) {
  union {
    sockaddr any;
    sockaddr_in inet;
    sockaddr_un local;
  } to{};
  socklen_t length = sizeof to.inet;
  if (o.over == transport::local) {
    to.local.sun_family = AF_UNIX;  // an abstract name, so it begins with a zero
    const int name = std::snprintf(to.local.sun_path + 1, sizeof to.local.sun_path - 1, "weft_echo.%d", o.port);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(name));
  } else {
    to.inet = {AF_INET, htons(static_cast<std::uint16_t>(o.port)), {htonl(INADDR_LOOPBACK)}, {}};
  }
  const int one = 1;
  for (int attempt = 0; attempt < 500; ++attempt) {  // the server may still be starting
    const int fd = ::socket(to.any.sa_family, o.over == transport::udp ? SOCK_DGRAM : SOCK_STREAM, 0);
    if (fd < 0) fail("socket");
    if (o.over == transport::tcp) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (::connect(fd, &to.any, length) == 0 && (o.over != transport::udp || is_answered(fd))) return fd;
    ::close(fd);
    ::usleep(10'000);
  }
  fail("connect");
}

class client {
 public:
  explicit client(const options& o) : options_(o), epoll_(::epoll_create1(0)), all_(o.connections) {
    for (connection& c : all_) {
      c.fd = dial(o);
      epoll_event e{EPOLLIN, {.ptr = &c}};
      if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, c.fd, &e) != 0) fail("epoll_ctl");
    }
  }

  // Each connection sends its next message when the last one has come back.
  void closed_loop(std::size_t requests) {
    begin(requests);
    std::size_t sent = 0;
    for (connection& c : all_)
      if (sent < requests) c.send(now_ns(), mark(sent)), ++sent;
    while (answered_ < requests)
      for_answers(-1, [&](connection& c) {
        if (sent < requests) c.send(now_ns(), mark(sent)), ++sent;
      });
  }
  // All connections send at once and wait for all.
  void bursts(std::size_t requests) {
    begin(requests);
    while (answered_ < requests) {
      const std::size_t before = answered_;
      const std::int64_t start = now_ns();
      for (connection& c : all_) c.send(start);
      while (answered_ < before + all_.size()) for_answers(-1, [](connection&) {});
    }
  }
  // Messages leave at fixed times, whether or not the answers have come; latencies count from the time at which a
  // message should have left.
  void open_loop(std::size_t requests) {
    begin(requests);
    const std::int64_t start = now_ns();
    const double gap = 1e9 / options_.rate;
    std::size_t sent = 0;
    while (answered_ < requests) {
      const std::int64_t now = now_ns();
      while (sent < requests) {
        const auto due = start + static_cast<std::int64_t>(gap * static_cast<double>(sent));
        if (due > now) break;
        all_[sent % all_.size()].send(due, mark(sent));
        ++sent;
      }
      for_answers(0, [](connection&) {});
    }
  }

  void report(const char* mode) {
    const double seconds = static_cast<double>(now_ns() - start_) / 1e9;
    std::sort(latencies_.begin(), latencies_.end());
    const auto at = [&](double q) {
      return latencies_.empty()
                 ? 0
                 : latencies_[static_cast<std::size_t>(q * static_cast<double>(latencies_.size() - 1))] / 1e3;
    };
    std::printf("{\"mode\":\"%s\",\"n\":%zu,\"per_second\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f}\n",
                mode, answered_, static_cast<double>(answered_) / seconds, at(0.5), at(0.99), at(0.999));
    std::fflush(stdout);
  }
  // The handler of the first connection blocks its thread from now on, if the server knows this message.
  void stick() {
    all_.front().send(now_ns(), sticks);
    if (::epoll_ctl(epoll_, EPOLL_CTL_DEL, all_.front().fd, nullptr) != 0) fail("epoll_ctl");
    all_.erase(all_.begin());  // NOLINT: the registrations point into the vector, so they are made anew
    for (connection& c : all_) {
      epoll_event e{EPOLLIN, {.ptr = &c}};
      if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, c.fd, &e) != 0) fail("epoll_ctl");
    }
  }

 private:
  [[nodiscard]] char mark(std::size_t message) const {
    return options_.compute != 0 && message % options_.compute == 0 ? computes : plain;
  }
  void begin(std::size_t requests) {
    answered_ = 0;
    latencies_.clear();
    latencies_.reserve(requests);
    start_ = now_ns();
  }
  template <class F>
  void for_answers(int timeout, F answered) {
    epoll_event events[256];
    const int ready = ::epoll_wait(epoll_, events, 256, timeout);
    for (int i = 0; i < ready; ++i) {
      auto& c = *static_cast<connection*>(events[i].data.ptr);
      char room[size * 64];
      const ssize_t n = ::read(c.fd, room, sizeof room);
      if (n <= 0) fail("read");
      c.received += static_cast<int>(n);
      const std::int64_t now = now_ns();
      for (; c.received >= size; c.received -= size) {
        if (c.sent.front().counts) latencies_.push_back(static_cast<double>(now - c.sent.front().at));
        c.sent.pop_front();
        ++answered_;
        answered(c);
      }
    }
  }

  const options options_;
  const int epoll_;
  std::vector<connection> all_;
  std::size_t answered_ = 0;
  std::vector<double> latencies_;
  std::int64_t start_ = now_ns();
};

// Connect, one exchange, close.
void reconnect(const options& o) {
  const std::int64_t start = now_ns();
  for (std::size_t i = 0; i < o.requests; ++i) {
    connection c{.fd = dial(o), .sent = {}};
    c.send(0);
    char room[size];
    for (ssize_t got = 0; got < size;) {
      const ssize_t n = ::read(c.fd, room + got, static_cast<std::size_t>(size - got));
      if (n <= 0) fail("read");
      got += n;
    }
    ::close(c.fd);
  }
  std::printf("{\"mode\":\"reconnect\",\"n\":%zu,\"per_second\":%.0f}\n", o.requests,
              static_cast<double>(o.requests) * 1e9 / static_cast<double>(now_ns() - start));
}

options parse(int argc, char** argv) {
  options o;
  if (argc < 2) std::fputs("usage: echo_client PORT [options]\n", stderr), std::exit(2);
  o.port = std::atoi(argv[1]);
  for (int i = 2; i < argc; ++i) {
    const std::string_view a = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::atof(argv[++i]) : 0; };
    if (a == "--connections")
      o.connections = static_cast<std::size_t>(value());
    else if (a == "--requests")
      o.requests = static_cast<std::size_t>(value());
    else if (a == "--rate")
      o.rate = value();
    else if (a == "--idle")
      o.idle = static_cast<int>(value());
    else if (a == "--compute")
      o.compute = static_cast<std::size_t>(value());
    else if (a == "--udp")
      o.over = transport::udp;
    else if (a == "--unix")
      o.over = transport::local;
    else if (a == "--burst")
      o.burst = true;
    else if (a == "--reconnect")
      o.reconnect = true;
    else if (a == "--stick")
      o.stick = true;
    else
      std::fprintf(stderr, "unknown option %s\n", argv[i]), std::exit(2);
  }
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  const options o = parse(argc, argv);
  if (o.reconnect) return reconnect(o), 0;
  client c(o);
  if (o.idle != 0) {
    c.closed_loop(o.connections);
    std::puts("{\"mode\":\"idle\"}");
    std::fflush(stdout);
    ::sleep(static_cast<unsigned>(o.idle));
    return 0;
  }
  if (o.stick) c.stick();
  const auto run = [&](std::size_t requests) {
    if (o.rate > 0)
      c.open_loop(requests);
    else if (o.burst)
      c.bursts(requests);
    else
      c.closed_loop(requests);
  };
  run(o.requests / 10);
  run(o.requests);
  c.report(o.rate > 0 ? "rate" : o.burst ? "burst" : "closed");
}
