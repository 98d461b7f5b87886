// One block of input becomes a member of its own, or a part of the only member (--single).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include <weftgz/buffer.hpp>

namespace weftgz {

// What libdeflate and zlib need to compute one block, allocated when it is used first. For one task at a time.
class tool {
 public:
  tool();
  ~tool();
  tool(const tool&) = delete;
  tool& operator=(const tool&) = delete;

  // Puts the header, the deflated input and the trailer into `out`: a complete member. If `sized`, the header has room
  // for the length of the member, which is filled in.
  void make_member(bytes in, std::string_view header, bool sized, int level, buffer& out);

  // Puts the deflated input, which ends at a byte and is not the end of the stream, into `out`. `dictionary` is what
  // stands before `in` in the stream; matches refer to it. Returns the CRC of `in`.
  std::uint32_t make_part(bytes in, bytes dictionary, int level, buffer& out);

  // Inflates what stands behind a header, to the end of its member, and checks it. Throws bad_input.
  void inflate_member(bytes body_and_trailer, buffer& out);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

[[nodiscard]] std::uint32_t crc_of(std::uint32_t before, bytes b) noexcept;
// The CRC of two pieces one behind the other.
[[nodiscard]] std::uint32_t crc_combined(std::uint32_t first, std::uint32_t second,
                                         std::size_t size_of_second) noexcept;

// The end of a deflate stream that consists of parts: an empty last block.
inline constexpr std::string_view end_of_parts("\x03\x00", 2);

inline constexpr std::size_t dictionary_size = std::size_t{32} << 10;

// How the levels of gzip are kept. A member begins without a dictionary, which costs a little, and libdeflate's levels are
// not zlib's: at the same number it is far better below 5 and a little worse above. With these levels and sizes the output
// is at most 1.005 times that of pigz at the same number, by bench/weftgz.py. Its worst corpus, 50 MB of C++ headers, gave
// 1.022 with libdeflate's level 6 for 6, and 1.0058 at level 9 with blocks of 1 MiB.
[[nodiscard]] constexpr int libdeflate_level(int level) noexcept {
  if (level == 11) return 12;  // which is to its others what pigz's 11 is
  return level >= 5 && level <= 8 ? level + 1 : level;
}
// How much input a member or a part has, unless -b says otherwise.
[[nodiscard]] constexpr std::size_t usual_block_size(int level, bool single) noexcept {
  if (single) return std::size_t{128} << 10;
  if (level < 5) return std::size_t{512} << 10;
  return level < 9 ? std::size_t{1024} << 10 : std::size_t{1536} << 10;
}

}  // namespace weftgz
