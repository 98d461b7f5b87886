#include <weftgz/header.hpp>

#include <array>
#include <string_view>

#include <zlib.h>

#include <weftgz/failure.hpp>

namespace weftgz {
namespace {

enum flag : unsigned { is_text = 1, has_crc = 2, has_extra = 4, has_name = 8, has_comment = 16, reserved = 0xe0 };

constexpr std::size_t place_of_size = 16;  // 10 bytes, 2 for the length of the extra field, 4 for id and length
constexpr std::size_t longest_name = 4096;

void put(std::string& to, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) to.push_back(static_cast<char>(value >> (8 * i)));
}

void put(std::byte* to, std::uint32_t value) noexcept {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint32_t get(const std::byte* from) noexcept {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= std::to_integer<std::uint32_t>(from[i]) << (8 * i);
  return value;
}

// Counts what is read and keeps the CRC of it, which a header may end with.
class reading {
 public:
  explicit reading(const next_byte& next) : next_(next) {
    constexpr std::array<Bytef, 2> magic{0x1f, 0x8b};
    crc_ = static_cast<std::uint32_t>(crc32(0, magic.data(), magic.size()));
  }
  unsigned byte() {
    const int c = next_();
    if (c < 0) throw_unexpected_end();
    const auto one = static_cast<Bytef>(c);
    crc_ = static_cast<std::uint32_t>(crc32(crc_, &one, 1));
    ++size_;
    return one;
  }
  std::uint32_t number(int size) {
    std::uint32_t value = 0;
    for (int i = 0; i < size; ++i) value |= byte() << (8 * i);
    return value;
  }
  std::string text() {
    std::string s;
    while (const unsigned c = byte())
      if (s.size() < longest_name) s.push_back(static_cast<char>(c));
    return s;
  }
  [[nodiscard]] std::uint32_t crc() const noexcept { return crc_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  const next_byte& next_;
  std::uint32_t crc_;
  std::size_t size_ = 2;
};

// Looks through the subfields. One that does not fit into the field ends the search; gzip does not look into it at all.
void read_extra(reading& r, header& h) {
  std::uint32_t left = r.number(2);
  while (left >= 4) {
    const unsigned id = r.number(2);
    const std::uint32_t length = r.number(2);
    left -= 4;
    if (length > left) break;
    left -= length;
    if (id == ('W' | 'G' << 8) && length == 4)
      h.member_size = r.number(4);
    else if (id == ('B' | 'C' << 8) && length == 2)
      h.member_size = r.number(2) + 1;
    else
      for (std::uint32_t i = 0; i < length; ++i) (void)r.byte();
  }
  while (left-- > 0) (void)r.byte();
}

}  // namespace

std::string make_header(const header_fields& f) {
  std::string h("\x1f\x8b\x08", 3);
  put(h, (f.sized ? has_extra : 0U) | (f.name.empty() ? 0U : has_name), 1);
  put(h, f.modified, 4);
  put(h, f.level >= 9 ? 2 : f.level == 1 ? 4 : 0, 1);  // best, fastest, neither
  put(h, 3, 1);  // Unix
  if (f.sized) {
    put(h, 8, 2);
    h += "WG";
    put(h, 4, 2);
    put(h, 0, 4);
  }
  if (!f.name.empty()) {
    h += f.name;
    h.push_back('\0');
  }
  return h;
}

void set_member_size(room member) { put(member.data() + place_of_size, static_cast<std::uint32_t>(member.size())); }

header read_header(const next_byte& next) {
  reading r(next);
  header h;
  if (const unsigned method = r.byte(); method != 8)
    throw bad_input("unknown method " + std::to_string(method) + " -- not supported");
  const unsigned flags = r.byte();
  if ((flags & reserved) != 0) throw bad_input("has flags that are unknown -- not supported");
  h.modified = r.number(4);
  (void)r.number(2);  // how hard it was compressed, and on which system
  if ((flags & has_extra) != 0) read_extra(r, h);
  if ((flags & has_name) != 0) h.name = r.text();
  if ((flags & has_comment) != 0) (void)r.text();
  if ((flags & has_crc) != 0) {
    const std::uint32_t computed = r.crc() & 0xffff;
    if (r.number(2) != computed) throw bad_input("invalid header--crc error");
  }
  h.size = r.size();
  return h;
}

trailer read_trailer(bytes eight) noexcept { return {get(eight.data()), get(eight.data() + 4)}; }

void write_trailer(room eight, trailer t) noexcept {
  put(eight.data(), t.crc);
  put(eight.data() + 4, t.length);
}

}  // namespace weftgz
