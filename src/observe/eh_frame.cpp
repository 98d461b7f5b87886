#include "observe/eh_frame.hpp"

namespace weft::inline v1::observe {
namespace {

enum encoding : std::uint8_t {
  enc_absolute = 0x00,
  enc_uleb = 0x01,
  enc_u2 = 0x02,
  enc_u4 = 0x03,
  enc_u8 = 0x04,
  enc_sleb = 0x09,
  enc_s2 = 0x0a,
  enc_s4 = 0x0b,
  enc_s8 = 0x0c,
  enc_pc_relative = 0x10,
  enc_data_relative = 0x30,
  enc_indirect = 0x80,
  enc_omitted = 0xff,
};

// The number itself, before anything is added to it.
std::uintptr_t encoded_number(byte_reader& r, std::uint8_t encoding) noexcept {
  switch (encoding & 0x0f) {
    case enc_absolute:
    case enc_u8:
    case enc_s8: return r.fixed<std::uint64_t>();
    case enc_uleb: return r.uleb();
    case enc_u2: return r.fixed<std::uint16_t>();
    case enc_u4: return r.fixed<std::uint32_t>();
    case enc_sleb: return static_cast<std::uintptr_t>(r.sleb());
    case enc_s2: return static_cast<std::uintptr_t>(std::intptr_t{r.fixed<std::int16_t>()});
    case enc_s4: return static_cast<std::uintptr_t>(std::intptr_t{r.fixed<std::int32_t>()});
    default: r.fail(); return 0;
  }
}

// A record of .eh_frame: what follows its length. Records are at least four bytes long, so a walk over them ends.
struct record {
  byte_reader body;
  bool is_last = false;
};

record next_record(byte_reader& r) noexcept {
  std::uint64_t size = r.fixed<std::uint32_t>();
  if (size == 0xffffffff) size = r.fixed<std::uint64_t>();
  record result;
  result.is_last = r.has_failed() || size == 0;
  result.body = r.part(size);
  return result;
}

bool read_common(const image& in, std::uintptr_t at, function_entry& f, bool& has_augmentation) noexcept {
  byte_reader outer = in.from(at);
  record cie = next_record(outer);
  byte_reader& r = cie.body;
  if (cie.is_last || r.fixed<std::uint32_t>() != 0) return false;  // 0 distinguishes a CIE from an FDE
  const auto version = r.fixed<std::uint8_t>();
  if (version != 1 && version != 3 && version != 4) return false;
  byte_reader augmentation = r;
  while (r.fixed<char>() != 0) {}
  if (version == 4) r.skip(2);  // sizes of addresses and of segment selectors
  f.code_alignment = r.uleb();
  f.data_alignment = r.sleb();
  f.return_column = version == 1 ? r.fixed<std::uint8_t>() : r.uleb();
  f.pointer_encoding = enc_absolute;
  f.is_signal_frame = false;
  has_augmentation = augmentation.fixed<char>() == 'z';
  if (has_augmentation) {
    byte_reader data = r.part(r.uleb());
    for (char c; (c = augmentation.fixed<char>()) != 0;) {
      if (c == 'R') {
        f.pointer_encoding = data.fixed<std::uint8_t>();
      } else if (c == 'S') {
        f.is_signal_frame = true;
      } else if (c == 'P') {
        static_cast<void>(encoded_number(data, data.fixed<std::uint8_t>()));  // the personality, not for us
      } else if (c == 'L') {
        data.skip(1);
      } else if (c != 'B' && c != 'G') {  // aarch64: the key of signed addresses, tagged stacks
        break;                            // 'z' gives the size of what we do not know
      }
    }
    if (data.has_failed()) return false;
  }
  f.common = r;
  return !r.has_failed();
}

// `at`: of an FDE, or of a CIE, which is no entry.
bool read_entry(const image& in, std::uintptr_t at, function_entry& f) noexcept {
  byte_reader outer = in.from(at);
  record fde = next_record(outer);
  byte_reader& r = fde.body;
  const std::uintptr_t here = r.address();
  const auto back = r.fixed<std::uint32_t>();
  if (fde.is_last || back == 0) return false;
  bool has_augmentation = false;
  if (!read_common(in, here - back, f, has_augmentation)) return false;
  f.begin = encoded_pointer(r, f.pointer_encoding, in.header);
  f.end = f.begin + encoded_number(r, f.pointer_encoding);
  if (has_augmentation) r.skip(r.uleb());
  f.own = r;
  return !r.has_failed();
}

// The address of the last FDE that begins at or before pc; 0: there is none.
std::uintptr_t search_index(byte_reader table, std::uint64_t count, std::uintptr_t header, std::uintptr_t pc) noexcept {
  constexpr std::size_t row = 8;  // two 32-bit offsets from the header: code, FDE
  const auto rows = table.left();
  if (count > rows.size() / row) return 0;
  const auto column = [&](std::uint64_t i, std::size_t offset) {
    std::int32_t value;
    std::memcpy(&value, rows.data() + i * row + offset, sizeof value);
    return header + static_cast<std::uintptr_t>(std::intptr_t{value});
  };
  std::uint64_t first = 0, end = count;  // rows before `first` begin at or before pc, those from `end` on after it
  while (first < end) {
    const std::uint64_t middle = first + (end - first) / 2;
    if (column(middle, 0) <= pc) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return first == 0 ? 0 : column(first - 1, 4);
}

bool scan(const image& in, std::uintptr_t eh_frame, std::uintptr_t pc, function_entry& found) noexcept {
  for (byte_reader r = in.from(eh_frame); !r.is_at_end();) {
    const std::uintptr_t at = r.address();
    if (next_record(r).is_last) return false;
    if (read_entry(in, at, found) && found.begin <= pc && pc < found.end) return true;
  }
  return false;
}

}  // namespace

byte_reader image::from(std::uintptr_t at) const noexcept {
  byte_reader r(bytes, address);
  r.skip(at - address);  // wraps around to a size that does not fit, if it lies before
  return r;
}

std::uintptr_t encoded_pointer(byte_reader& r, std::uint8_t encoding, std::uintptr_t data) noexcept {
  const std::uintptr_t here = r.address();
  const std::uintptr_t number = encoded_number(r, encoding);
  switch (encoding & 0xf0) {
    case enc_absolute: return number;
    case enc_pc_relative: return here + number;
    case enc_data_relative: return data + number;
    default: r.fail(); return 0;  // indirect, omitted, relative to something else
  }
}

bool find_entry(const image& in, std::uintptr_t pc, function_entry& found) noexcept {
  byte_reader r = in.from(in.header);
  if (r.fixed<std::uint8_t>() != 1) return false;  // version
  const auto frame_encoding = r.fixed<std::uint8_t>();
  const auto count_encoding = r.fixed<std::uint8_t>();
  const auto table_encoding = r.fixed<std::uint8_t>();
  const std::uintptr_t eh_frame = encoded_pointer(r, frame_encoding, in.header);
  if (r.has_failed()) return false;
  if (count_encoding == enc_omitted || table_encoding != (enc_data_relative | enc_s4)) {
    return scan(in, eh_frame, pc, found);  // no index, or one that no linker writes
  }
  const std::uint64_t count = encoded_pointer(r, count_encoding, in.header);
  if (r.has_failed()) return false;
  const std::uintptr_t fde = search_index(r, count, in.header, pc);
  return fde != 0 && read_entry(in, fde, found) && found.begin <= pc && pc < found.end;
}

}  // namespace weft::inline v1::observe
