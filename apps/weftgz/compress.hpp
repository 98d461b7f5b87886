// reader → crew → writer: blocks are read in order, compressed at the same time, and written in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <weftgz/ends.hpp>
#include <weftgz/shop.hpp>

namespace weftgz {

struct totals {
  std::uint64_t packed = 0, plain = 0;
};

struct compression {
  int level = 6;
  std::size_t block_size = 0;
  bool single = false;  // one member for all of the input, not one for each block
  bool independent = false;  // with `single`: blocks do not refer to each other
  std::string name;  // for the header; empty: none
  std::uint32_t modified = 0;
};

// Throws bad_input and io_failure. A cancellation point.
totals compress(source& in, sink& out, const compression& how, shop& with);

}  // namespace weftgz
