// Transfers that the kernel cuts anywhere, and buffers that are many or large: every byte comes once, in its place.
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "io/faults.hpp"
#include "io/files.hpp"
#include <weft/net/unix.hpp>

namespace {

using namespace support::usual;
using namespace support;
using weft::const_buffer;
using weft::mutable_buffer;

// A kernel that transfers at most so many bytes in the next call, and in each of the calls after that.
struct {
  base::atomic<std::size_t> next{SIZE_MAX};
  base::atomic<std::size_t> then{SIZE_MAX};
  std::size_t take() noexcept { return next.exchange(then.load()); }
  void set(std::size_t first, std::size_t later) {
    then = later;
    next = first;
  }
} at_most;

const io::kernel_calls& cutting_kernel() {
  static const io::kernel_calls calls = [] {
    io::kernel_calls k = io::real_kernel();
    k.send = [](int fd, const void* from, std::size_t size, int flags) noexcept {
      return ::send(fd, from, std::min(size, at_most.take()), flags);
    };
    k.recv = [](int fd, void* to, std::size_t size, int flags) noexcept {
      return ::recv(fd, to, std::min(size, at_most.take()), flags);
    };
    k.sendmsg = [](int fd, const msghdr* m, int flags) noexcept {
      std::string joined;
      for (std::size_t i = 0; i < m->msg_iovlen; ++i)
        joined.append(static_cast<const char*>(m->msg_iov[i].iov_base), m->msg_iov[i].iov_len);
      return ::send(fd, joined.data(), std::min(joined.size(), at_most.take()), flags);
    };
    k.recvmsg = [](int fd, msghdr* m, int flags) noexcept {
      std::size_t size = 0;
      for (std::size_t i = 0; i < m->msg_iovlen; ++i) size += m->msg_iov[i].iov_len;
      std::string joined(std::min(size, at_most.take()), '\0');
      const ssize_t n = ::recv(fd, joined.data(), joined.size(), flags);
      for (std::size_t i = 0, at = 0; n > 0 && at < static_cast<std::size_t>(n); ++i) {
        const std::size_t part = std::min(m->msg_iov[i].iov_len, static_cast<std::size_t>(n) - at);
        std::memcpy(m->msg_iov[i].iov_base, joined.data() + at, part);
        at += part;
      }
      return n;
    };
    return k;
  }();
  return calls;
}

const std::string text = "abcdefghijk";
// The text in parts, with empty ones at every kind of place.
const std::vector<const_buffer> parts = {"", "abc", "", "d", "", "", "efghij", "k", ""};

// Every cut of one message, and a message in pieces of every size. Not for TCP: there the kernel transfers less than it is
// asked for only if there is no more, and then tells of the next edge (io.D1); a cut that is none would be waited for.
template <class Stream>
void survives_every_cut(const Stream& from, const Stream& to) {
  for (std::size_t first = 1; first <= text.size(); ++first)
    for (const std::size_t later : {std::size_t{1}, std::size_t{2}, first, SIZE_MAX}) {
      at_most.set(first, later);
      from.write_all(std::span(parts));
      from.write_all(text);
      std::string got(2 * text.size(), '-');
      to.read_exactly(got);
      ASSERT_EQ(got, text + text) << "cut at " << first << ", then " << later;
    }
  at_most.set(SIZE_MAX, SIZE_MAX);
}

TEST(ShortTransfer, writes_and_reads_go_on_at_every_byte) {
  with_kernel(cutting_kernel(), [] {
    auto [one, other] = net::unix_stream::pair();
    survives_every_cut(one, other);
    // The same when the descriptors are watched.
    auto reader = spawn_and_park([&s = other] {
      char room[1];
      s.read_exactly(room);
    });
    one.write_all("x");
    reader.join();
    survives_every_cut(one, other);
    survives_every_cut(other, one);
  });
}

TEST(ShortTransfer, a_read_into_several_buffers_fills_them_in_order_up_to_every_byte) {
  with_kernel(cutting_kernel(), [] {
    const auto [client, server] = connected_pair();
    for (std::size_t cut = 1; cut <= text.size(); ++cut) {
      client.write_all(text);
      until_buffered(server, text.size());
      std::string got(text.size(), '-');
      const mutable_buffer to[] = {
          {got.data(), 0}, {got.data(), 3}, {got.data() + 3, 0}, {got.data() + 3, 1}, {got.data() + 4, 7}};
      at_most.set(cut, SIZE_MAX);
      ASSERT_EQ(server.read_some(to), cut);
      EXPECT_EQ(got, text.substr(0, cut) + std::string(text.size() - cut, '-'));
      if (cut < text.size()) server.read_exactly({got.data(), text.size() - cut});
    }
  });
}

// The kernel takes 1,024 buffers in one call.
TEST(ShortTransfer, any_number_of_buffers_will_do) {
  with_sockets([] {
    constexpr std::size_t count = 5'000;
    const std::string all = pattern(2 * count);
    std::vector<const_buffer> from;
    for (std::size_t i = 0; i < count; ++i) {
      from.emplace_back(all.data() + 2 * i, 2);
      from.emplace_back(nullptr, 0);
    }
    auto [client, server] = connected_pair();
    auto writer = weft::spawn([&, &c = client] { c.write_all(std::span<const const_buffer>(from)); });
    std::string got(all.size(), '-');
    std::vector<mutable_buffer> to(2'000, mutable_buffer(nullptr, 0));  // more empty ones than a call takes buffers
    for (std::size_t i = 0; i < count; ++i) to.emplace_back(got.data() + 2 * i, 2);
    std::size_t n = server.read_some(to);
    EXPECT_GT(n, 0u);
    server.read_exactly({got.data() + n, got.size() - n});
    EXPECT_EQ(got, all);
    writer.join();
    const std::vector<mutable_buffer> nothing(2'000, mutable_buffer(nullptr, 0));
    EXPECT_EQ(server.read_some(nothing), 0u) << "and does not wait";
  });
}

// The kernel transfers at most 2 GiB less a page in one call.
TEST(ShortTransfer, buffers_beyond_two_gigabytes_take_several_calls) {
  static constexpr std::size_t most = 0x7ffff000;
  static base::atomic<std::size_t> counted{0};
  static io::kernel_calls counting = io::real_kernel();
  // What is too small is real, so that the test can talk to the stream as usual.
  static constexpr auto count = [](std::size_t size) noexcept {
    counted += std::min(size, most);
    return static_cast<ssize_t>(std::min(size, most));
  };
  counting.send = [](int fd, const void* from, std::size_t size, int flags) noexcept {
    return size < 100 ? ::send(fd, from, size, flags) : count(size);
  };
  counting.recv = [](int fd, void* to, std::size_t size, int flags) noexcept {
    return size < 100 ? ::recv(fd, to, size, flags) : count(size);
  };
  counting.sendmsg = [](int, const msghdr* m, int) noexcept {
    std::size_t size = 0;
    for (std::size_t i = 0; i < m->msg_iovlen; ++i) size += m->msg_iov[i].iov_len;
    return count(size);
  };
  constexpr std::size_t size = (std::size_t{5} << 30) + 200;
  const file_test::reserved_memory memory(size);
  with_kernel(counting, [&] {
    auto [client, server] = connected_pair();
    const auto transfers_all = [&, &s = server] {
      counted = 0;
      s.write_all(memory.all());
      EXPECT_EQ(counted.load(), size);
      const const_buffer several[] = {memory.all(), memory.all()};
      s.write_all(several);
      EXPECT_EQ(counted.load(), 3 * size);
      s.read_exactly(memory.all());
      EXPECT_EQ(counted.load(), 4 * size);
      EXPECT_EQ(s.read_some(memory.all()), most);
      EXPECT_EQ(s.write_some(memory.all()), most);
    };
    transfers_all();
    auto reader = spawn_and_park([&s = server] {
      char room[1];
      s.read_exactly(room);
    });
    client.write_all("x");
    reader.join();
    transfers_all();  // while it is watched
  });
  with_sockets([&] {
    auto [client, server] = connected_pair();
    client.write_all("text");
    until_buffered(server, 4);
    EXPECT_EQ(server.read_some(memory.all()), 4u) << "the kernel itself takes such a size";
    EXPECT_GT(client.write_some(memory.all()), 0u);
  });
}

}  // namespace
