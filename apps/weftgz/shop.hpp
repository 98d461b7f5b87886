// What all files of a run share, and the only two limits that there are:
//   blocks   bound the memory. One is taken before input is read for it, and given back when its output is written. A
//            reader that finds none waits: that is the back-pressure of a slow output.
//   crew     bounds the processors in use (-p).
// No cycle of waits is possible. A file takes its blocks in the order of its output, so the oldest that it holds can always
// be computed and written, and whoever computes waits for nothing.
#pragma once

#include <cstddef>

#include <weftgz/buffer.hpp>
#include <weftgz/crew.hpp>
#include <weftgz/pool.hpp>

namespace weftgz {

struct block {
  buffer in, out;
};
using taken_block = pool<block>::taken;

struct shop {
  // One block for each that computes, and some that are read, written or wait for an older one; fewer of these if blocks
  // are large. Guess until bench/weftgz.py says otherwise.
  explicit shop(std::size_t processors, std::size_t block_size = 0)
      : depth(processors + (block_size > large ? 2 : processors / 4 + 3)),
        blocks(depth),
        hands(processors) {}
  static constexpr std::size_t large = std::size_t{1} << 20;

  std::size_t depth;
  pool<block> blocks;
  crew hands;
};

}  // namespace weftgz
