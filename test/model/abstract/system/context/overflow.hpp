#pragma once

#include <cstddef>

namespace weft::inline v1::context {

struct stack;
template <class Describe, class Advise>
void install_overflow_reporter(Describe, Advise) noexcept {}
struct alternate_signal_stack {
  ~alternate_signal_stack() {}
};

}  // namespace weft::inline v1::context
