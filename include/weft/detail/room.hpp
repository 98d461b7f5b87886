// Memory in a public object for a core that only src/sync knows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::inline v1::locks {

// All bytes zero is the first state of a core, so an object that consists of such memory is initialized before any code
// runs.
template <std::size_t Words>
struct alignas(std::uint64_t) room {
  std::byte bytes[Words * sizeof(std::uint64_t)] = {};
};

}  // namespace weft::inline v1::locks
