// Reading the binary tables of a program. Every read is bounded: a read past the end gives 0 and makes the reader failed,
// for good, so that a parser asks once, at the end, whether all that it read was there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace weft::inline v1::observe {

class byte_reader {
 public:
  byte_reader() = default;
  // `address`: where the bytes are in the program, which is elsewhere if they are a copy.
  byte_reader(std::span<const std::byte> bytes, std::uintptr_t address) noexcept : left_(bytes), address_(address) {}

  [[nodiscard]] bool has_failed() const noexcept { return failed_; }
  [[nodiscard]] bool is_at_end() const noexcept { return left_.empty(); }
  [[nodiscard]] std::uintptr_t address() const noexcept { return address_; }
  [[nodiscard]] std::span<const std::byte> left() const noexcept { return left_; }

  void fail() noexcept {
    failed_ = true;
    left_ = {};
  }

  template <class T>
  [[nodiscard]] T fixed() noexcept {
    T value{};
    if (left_.size() < sizeof(T)) {
      fail();
      return value;
    }
    std::memcpy(&value, left_.data(), sizeof(T));
    advance(sizeof(T));
    return value;
  }

  // Numbers of variable length. What does not fit into 64 bits is cut off.
  [[nodiscard]] std::uint64_t uleb() noexcept {
    unsigned shift = 0;
    return leb(shift).value;
  }
  [[nodiscard]] std::int64_t sleb() noexcept {
    unsigned shift = 0;
    auto [value, last] = leb(shift);
    if (shift < 64 && (last & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
    return static_cast<std::int64_t>(value);
  }

  // The next `size` bytes, which this reader passes over.
  [[nodiscard]] byte_reader part(std::uint64_t size) noexcept {
    byte_reader result;
    if (size > left_.size()) {
      fail();
      result.fail();
      return result;
    }
    result = byte_reader(left_.first(static_cast<std::size_t>(size)), address_);
    advance(static_cast<std::size_t>(size));
    return result;
  }
  void skip(std::uint64_t size) noexcept { static_cast<void>(part(size)); }

 private:
  struct leb_digits {
    std::uint64_t value;
    std::uint8_t last;
  };
  leb_digits leb(unsigned& shift) noexcept {
    leb_digits result{0, 0};
    do {
      result.last = fixed<std::uint8_t>();
      if (shift < 64) result.value |= std::uint64_t{result.last & 0x7fu} << shift;
      shift += 7;
    } while ((result.last & 0x80) != 0 && !failed_);
    return result;
  }
  void advance(std::size_t size) noexcept {
    left_ = left_.subspan(size);
    address_ += size;
  }

  std::span<const std::byte> left_;
  std::uintptr_t address_ = 0;
  bool failed_ = false;
};

}  // namespace weft::inline v1::observe
