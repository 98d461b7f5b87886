// Room in a public object for a core that src/sync knows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::inline v1::locks {

// All zero is a core's first state, so an object that has only a room is initialized before any code runs.
template <std::size_t Words>
struct alignas(std::uint64_t) room {
  std::byte bytes[Words * sizeof(std::uint64_t)] = {};
};

}  // namespace weft::inline v1::locks
