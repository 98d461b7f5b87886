// What the tests of datagrams share.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/net.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/net/datagram_socket.hpp>

namespace support {

// The next datagram, which is expected to be short.
[[nodiscard]] inline std::string text_from(const net::datagram_socket& s) {
  char room[256];
  const net::received got = s.recv_from(room);
  EXPECT_FALSE(got.truncated);
  return {room, got.size};
}

// The error of a system call that has an overload for it.
template <class F>
[[nodiscard]] std::error_code code_of(F&& f) {
  std::error_code why;
  f(why);
  return why;
}

template <class F>
[[nodiscard]] std::string message_of(F&& f) {
  try {
    f();
  } catch (const std::system_error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

// Lets one task wait until another one, which cannot end before, is parked.
class parked_sign {
 public:
  void here() { who_.store(weft::waits::current_task(), weft::base::release); }
  void wait() const {
    until([this] { return is_parked(who_.load(weft::base::acquire)); });
  }

 private:
  weft::base::atomic<const weft::task::record*> who_{nullptr};
};

// Datagrams of various sizes, with their texts, which say where they belong.
class numbered_datagrams {
 public:
  numbered_datagrams(std::size_t count, std::size_t most_bytes, const net::endpoint& to = {}) {
    for (std::size_t i = 0; i < count; ++i) texts_.push_back(std::to_string(i) + '/' + pattern(i * 97 % most_bytes));
    for (const std::string& t : texts_) all_.push_back({t, to});
  }
  [[nodiscard]] const std::vector<net::outgoing>& all() const { return all_; }
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::vector<net::outgoing> all_;
};

// Places for datagrams.
class places {
 public:
  places(std::size_t count, std::size_t bytes) : memory_(count, std::string(bytes, '\0')) {
    for (std::string& m : memory_) all_.push_back({.room = m});
  }
  [[nodiscard]] std::vector<net::incoming>& all() { return all_; }
  [[nodiscard]] std::string text(std::size_t i) const { return memory_[i].substr(0, all_[i].size); }

 private:
  std::vector<std::string> memory_;
  std::vector<net::incoming> all_;
};

// Receives as many datagrams as that, in batches.
[[nodiscard]] inline std::vector<std::string> texts_from(const net::datagram_socket& s, std::size_t count,
                                                         std::size_t at_once) {
  std::vector<std::string> got;
  places p(at_once, 4096);
  while (got.size() < count) {
    const std::size_t n = s.recv_many(p.all());
    EXPECT_GT(n, 0u);
    for (std::size_t i = 0; i < n; ++i) got.push_back(p.text(i));
  }
  return got;
}

}  // namespace support
