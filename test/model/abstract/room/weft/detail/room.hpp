// The exploring twin of include/weft/detail/room.hpp. No constructor runs for a core in a room, so the explorer would not know of
// its atomics; here the room tells it: wherever one can begin, one has, with the value 0. Those that nobody uses cost nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "explore/ops.hpp"

namespace weft::inline v1::locks {

template <std::size_t Words>
struct alignas(std::uint64_t) room {
  static constexpr std::size_t step = sizeof(std::uint32_t);  // no two atomics of a core are nearer
  std::byte bytes[Words * sizeof(std::uint64_t)] = {};

  constexpr room() noexcept {
    if (std::is_constant_evaluated() || !explore::exploring) return;
    for (std::size_t at = 0; at < sizeof bytes; at += step) explore::born(bytes + at, 0, explore::sort::value);
  }
  constexpr ~room() {
    if (std::is_constant_evaluated() || !explore::exploring) return;
    for (std::size_t at = 0; at < sizeof bytes; at += step) explore::died(bytes + at);
  }
  room(const room&) = delete;
  room& operator=(const room&) = delete;
};

}  // namespace weft::inline v1::locks
