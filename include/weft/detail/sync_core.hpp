// What the synchronization primitives share that can be arms of a select. Those that cannot be arms include room.hpp
// only, because this header brings in all of select.
#pragma once

#include <utility>

#include <weft/detail/config.hpp>
#include <weft/detail/room.hpp>
#include <weft/select.hpp>

namespace weft::inline v1::detail {

// An operation of a primitive as an arm of a select.
template <class Operation>
class sync_arm final : public select_arm {
 public:
  explicit sync_arm(Operation op) noexcept : operation_(std::move(op)) {}
  [[nodiscard]] tried try_at_once() noexcept override { return operation_.try_alone(); }
  [[nodiscard]] waits::arm prepare() noexcept override { return {&operation_, &operation_.node()}; }
  [[nodiscard]] bool complete() noexcept override { return true; }
  template <class F>
  void tell(F& f, bool) {
    f();
  }

 private:
  Operation operation_;
};

}  // namespace weft::inline v1::detail
