#pragma once

#include <cstddef>

namespace weft::inline v1::context {

struct stack;
inline void install_overflow_reporter(std::size_t (*)(const stack&, char*, std::size_t)) noexcept {}
struct alternate_signal_stack {
  ~alternate_signal_stack() {}
};

}  // namespace weft::inline v1::context
