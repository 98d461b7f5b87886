// Happy eyeballs (RFC 8305) without sockets: which address of a host is tried when.
//
// A host may have addresses that do not answer, most often those of one family where its network is broken. So the
// families take turns, the next address is tried while the last attempt still waits, and the first attempt that succeeds
// wins. Who connects asks `connect_attempts` what to do next:
//
//   attempts.next(now) is the index of an address: begin to connect to it
//   otherwise: wait until an attempt succeeds or fails (failed()), or until attempts.next_time()
//   attempts.all_failed(): give up with attempts.error()
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <vector>

#include <weft/net/endpoint.hpp>

namespace weft::inline v1::io {

// The addresses with the families in turn, beginning with the family of the first. Within a family the order stays: it
// is that of the resolver, which prefers by RFC 6724. Whatever is neither IPv4 nor IPv6 comes last.
[[nodiscard]] std::vector<net::endpoint> connect_order(const std::vector<net::endpoint>& resolved);

class connect_attempts {
 public:
  using clock = std::chrono::steady_clock;
  // RFC 8305, "Connection Attempt Delay": long enough for a peer on another continent to answer.
  static constexpr clock::duration usual_delay = std::chrono::milliseconds(250);

  explicit connect_attempts(std::size_t addresses, clock::duration delay = usual_delay) noexcept
      : addresses_(addresses),
        delay_(delay) {}

  // The address to try now, which then counts as tried. Nothing if it is not time yet, or if there are no more.
  [[nodiscard]] std::optional<std::size_t> next(clock::time_point now) noexcept;
  // From when on next() has something to try; the clock's last moment if every address was tried.
  [[nodiscard]] clock::time_point next_time() const noexcept;
  // The attempt has ended without success. The next one need not wait for its time.
  void failed(std::size_t address, std::error_code why) noexcept;

  [[nodiscard]] std::size_t running() const noexcept { return begun_ - failed_; }
  // Also for no address at all; error() is then empty.
  [[nodiscard]] bool all_failed() const noexcept { return failed_ == addresses_; }
  // Why the address failed that is first in the order, of those that have failed. The others are second choices, and
  // their errors say less: "network is unreachable" where there is no IPv6.
  [[nodiscard]] std::error_code error() const noexcept { return error_; }

 private:
  const std::size_t addresses_;
  const clock::duration delay_;
  std::size_t begun_ = 0;
  std::size_t failed_ = 0;
  clock::time_point next_time_ = clock::time_point::min();
  std::size_t error_of_ = SIZE_MAX;
  std::error_code error_;
};

}  // namespace weft::inline v1::io
