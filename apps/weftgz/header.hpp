// The header of a gzip member (RFC 1952), written and read.
//
// weftgz writes members that can be inflated at the same time, because each says in its header how long it is. For that
// it has a subfield of the extra field, with the id "WG" and four bytes: the length of the whole member, header and
// trailer included. Others skip it. BGZF, of bgzip, has the same idea with other letters ("BC" and two bytes, the length
// less one), and is read as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <weftgz/buffer.hpp>

namespace weftgz {

inline constexpr std::size_t trailer_size = 8;

// A member with its length in the header is held in memory as a whole, twice. Longer ones are streamed, whatever their
// header says, so no input decides about our memory.
inline constexpr std::size_t longest_sized_member = std::size_t{8} << 20;

struct header {
  std::uint32_t modified = 0;  // seconds since 1970; 0: unknown
  std::string name;  // as stored; empty if there is none
  std::optional<std::uint32_t> member_size;
  std::size_t size = 0;  // of the header itself
};

struct header_fields {
  std::uint32_t modified = 0;
  std::string_view name = {};
  int level = 6;
  bool sized = false;  // leaves room for the member's length; fill it in by set_member_size
};
[[nodiscard]] std::string make_header(const header_fields& f);
void set_member_size(room member);  // the header begins there, and the member ends with it

// The next byte, or -1 at the end of the input.
using next_byte = std::function<int()>;

// Reads a header behind its first two bytes, 1f 8b, which the caller has seen. Throws bad_input.
[[nodiscard]] header read_header(const next_byte& next);

struct trailer {
  std::uint32_t crc = 0, length = 0;
};
[[nodiscard]] trailer read_trailer(bytes eight) noexcept;
void write_trailer(room eight, trailer t) noexcept;

}  // namespace weftgz
