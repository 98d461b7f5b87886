// The size of the portions in which a pool grows: the usual size, but a small one under the explorer, where each
// execution makes every object anew.
#pragma once

#include <cstddef>

namespace weft::inline v1::base {

constexpr std::size_t portion([[maybe_unused]] std::size_t usual, [[maybe_unused]] std::size_t small) noexcept {
#if defined(WEFT_MODEL)
  return small;
#else
  return usual;
#endif
}

}  // namespace weft::inline v1::base
