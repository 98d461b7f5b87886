#include "files.hpp"

#include <weft/fs/file.hpp>

#include <cstdio>
#include <cstring>

namespace weft_bench {

using namespace peer;

u64 file_cached_4k(u64 n) {
  constexpr u64 blocks = 16384;
  char block[4096] = {};
  static const weft::fs::file file = [&] {  // for both passes
    auto made = weft::fs::file::adopt(::fileno(std::tmpfile()), "a file of 64 MiB");
    for (u64 i = 0; i < blocks; ++i) {
      std::memcpy(block, &i, sizeof i);
      made.write_all_at(block, i * sizeof block);
    }
    return made;
  }();
  for (u64 i = 0; i < n; ++i) {
    const u64 which = mix(i) % blocks;
    u64 found = 0;
    check(file.read_at(block, which * sizeof block) == sizeof block, "read_at");
    std::memcpy(&found, block, sizeof found);
    check(found == which, "file_cached_4k");
  }
  return n;
}

}  // namespace weft_bench
