// xorshift64*. It is for choosing whom to steal from, not for secrets.
#pragma once

#include <cstdint>

namespace weft::inline v1::base {

class random {
 public:
  explicit random(std::uint64_t seed) noexcept : state_(seed * 0x9e3779b97f4a7c15u | 1) {}
  [[nodiscard]] std::uint32_t below(std::uint32_t limit) noexcept {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    const std::uint64_t r = state_ * 0x2545f4914f6cdd1du;
    return static_cast<std::uint32_t>((r >> 32) * limit >> 32);
  }

 private:
  std::uint64_t state_;
};

}  // namespace weft::inline v1::base
