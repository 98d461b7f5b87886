// The scheduler behind a runtime, for Weft's own layers and tests.
#pragma once

#include <weft/runtime.hpp>

namespace weft::inline v1 {

namespace detail {
struct runtime_access {
  [[nodiscard]] static sched::scheduler& core(runtime& r) noexcept { return *r.core_; }
};
}  // namespace detail

namespace sched {
[[nodiscard]] inline scheduler& core_of(runtime& r) noexcept { return detail::runtime_access::core(r); }
}  // namespace sched

}  // namespace weft::inline v1
