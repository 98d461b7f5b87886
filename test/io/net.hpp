// What the tests of sockets share: a connected pair, and the check that no descriptor is left.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>

#include "support/process.hpp"
#include "support/usual.hpp"
#include <weft/net/tcp.hpp>

namespace support {

namespace net = weft::net;

// Two ends of one TCP connection over loopback.
struct tcp_pair {
  net::tcp_stream client, server;
};
[[nodiscard]] inline tcp_pair connected_pair() {
  const net::tcp_listener listener(net::endpoint::loopback(0));
  net::tcp_stream client = net::tcp_stream::connect(listener.local_endpoint());
  return {std::move(client), listener.accept()};
}

// Runs body() as a task at each worker count, and sees that all descriptors are closed afterwards.
template <class Body>
void with_sockets(Body body) {
  const std::size_t before = open_descriptors();
  at_worker_counts_in_a_task("a test of sockets", std::move(body));
  EXPECT_EQ(open_descriptors(), before) << "descriptors are left open";
}

// Bytes that tell where they come from.
[[nodiscard]] inline std::string pattern(std::size_t size) {
  std::string s(size, '\0');
  for (std::size_t i = 0; i < size; ++i) s[i] = static_cast<char>('a' + i % 23 + i / 4096 % 3);
  return s;
}

[[nodiscard]] inline std::string read_to_end(const auto& from) {
  std::string all;
  char room[4096];
  while (const std::size_t n = from.read_some(room)) all.append(room, n);
  return all;
}

template <class F>
[[nodiscard]] std::error_code error_of(F&& f) {
  try {
    f();
  } catch (const std::system_error& e) {
    return e.code();
  }
  return {};
}

}  // namespace support
