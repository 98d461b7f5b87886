// The waits of the I/O layer, as public headers know them.
#pragma once

#include <cstdint>

#include <weft/detail/config.hpp>
#include <weft/detail/waitable.hpp>

namespace weft::inline v1::io {

class fd_record;
struct reception;

enum class side : std::uint8_t { read, write };

// The entry of a wait in the list of a direction.
struct limited_node : waits::node {
  std::int64_t deadline = INT64_MAX;  // nanoseconds of the steady clock
  reception* wanted = nullptr;  // what whoever claims the task may receive for it (src/io/reception.hpp)
};

// The wait until a system call in one direction of a descriptor is worth trying: something has come, or the other side
// has ended, or the descriptor was closed. Only for tasks of the runtime that watches the descriptor.
class WEFT_API readiness final : public waits::waitable {
 public:
  readiness(fd_record& r, side s, const waits::wait_kind& kind, std::int64_t deadline = INT64_MAX,
            reception* wanted = nullptr) noexcept
      : record_(&r),
        kind_(&kind),
        side_(s) {
    node_.deadline = deadline;
    node_.wanted = wanted;
  }

  [[nodiscard]] bool try_complete() noexcept override;
  [[nodiscard]] bool try_locked() noexcept override { return try_complete(); }
  [[nodiscard]] bool publish(waits::node& n) noexcept override;
  void unpublish(waits::node& n) noexcept override;
  [[nodiscard]] base::lock* own_lock() noexcept override;
  [[nodiscard]] waits::subject what() const noexcept override { return {kind_, record_}; }
  [[nodiscard]] waits::node& node() noexcept { return node_; }
  // Says what is known already. A wait that begins with true ends at once.
  void set_known(bool is_ready) noexcept { is_known_ready_ = is_ready; }

 private:
  fd_record* record_;
  const waits::wait_kind* kind_;
  side side_;
  bool is_known_ready_ = false;
  limited_node node_;
};

}  // namespace weft::inline v1::io
