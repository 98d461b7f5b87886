// An arm of a select that wins when a descriptor can be read or written. It transfers nothing.
#pragma once

#include <weft/detail/io_core.hpp>
#include <weft/select.hpp>

namespace weft::inline v1::net {

class WEFT_API ready_arm final : public select_arm {
 public:
  ready_arm(io::fd_record& r, io::side s) noexcept;

  // Both need a task (usage_error). Throw std::system_error if the descriptor cannot be watched, or was only borrowed
  // (weft/descriptor.hpp) and is closed by now.
  [[nodiscard]] weft::detail::tried try_at_once() override;
  [[nodiscard]] waits::arm prepare() override;
  [[nodiscard]] bool complete() noexcept override;
  template <class F>
  void tell(F& f, bool) {
    f();
  }

 private:
  [[nodiscard]] bool is_ready() const;
  [[nodiscard]] bool has_begun_to_wait();

  io::fd_record* record_;
  io::side side_;
  io::readiness operation_;
};

}  // namespace weft::inline v1::net
