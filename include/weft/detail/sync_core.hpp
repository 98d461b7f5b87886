// What the headers of the locks and their friends share: room for cores that src/sync knows, and arms of a select.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <weft/detail/config.hpp>
#include <weft/select.hpp>

namespace weft::inline v1::sync {

// All zero is a core's first state, so an object that has only a room is initialized before any code runs.
template <std::size_t Words>
struct alignas(std::uint64_t) room {
  std::byte bytes[Words * sizeof(std::uint64_t)] = {};
};

}  // namespace weft::inline v1::sync

namespace weft::inline v1::detail {

// An operation of a primitive as an arm of a select.
template <class Operation>
class sync_arm final : public select_arm {
 public:
  explicit sync_arm(Operation op) noexcept : operation_(std::move(op)) {}
  [[nodiscard]] wait::arm prepare() noexcept override { return {&operation_, &operation_.node()}; }
  [[nodiscard]] bool complete() noexcept override { return true; }
  template <class F>
  void tell(F& f, bool) {
    f();
  }

 private:
  Operation operation_;
};

}  // namespace weft::inline v1::detail
