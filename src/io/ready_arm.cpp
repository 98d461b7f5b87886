#include <weft/net/ready_arm.hpp>

#include <cerrno>

#include "io/transfer.hpp"
#include "io/watched.hpp"
#include <weft/detail/fd_handle.hpp>
#include <weft/detail/task_core.hpp>

namespace weft::inline v1::net {
namespace {

constexpr waits::wait_kind readable_kind{"readable", waits::kind_number::readable};
constexpr waits::wait_kind writable_kind{"writable", waits::kind_number::writable};

}  // namespace

ready_arm::ready_arm(io::fd_record& r, io::side s) noexcept
    : record_(&r),
      side_(s),
      operation_(r, s, s == io::side::read ? readable_kind : writable_kind) {}

weft::detail::tried ready_arm::try_at_once() {
  if (waits::current_task() == nullptr)
    weft::detail::throw_usage(
        "a descriptor is an arm of a select outside of a task; call read_some or write_some there");
  const io::use in_use(*record_);
  return weft::detail::won_if(!in_use || is_ready());  // closed: the operation says so
}

// An arm has to know: the direction may only say that a call is worth trying, and may not have been told yet of an edge,
// because nobody polls while no task waits.
bool ready_arm::is_ready() const {
  const int outcome = io::ask_kernel(*record_, side_);
  if (outcome != 0 && outcome != -EAGAIN)
    io::throw_if(std::error_code(-outcome, std::generic_category()), "wait for", *record_);
  return outcome == 0;
}

// Asks again, because the select may not have tried this arm alone, and only an answer that came while the descriptor was
// watched may be remembered (io.D1).
waits::arm ready_arm::prepare() {
  const io::use in_use(*record_);
  operation_.set_known(!in_use || !has_begun_to_wait());
  return {&operation_, &operation_.node()};
}

bool ready_arm::has_begun_to_wait() {
  if (const std::error_code why = io::watch_for_this_task(*record_, side_)) {
    if (why == std::errc::operation_not_permitted) return false;  // epoll says so of what is always ready
    if (why == std::errc::operation_canceled) return false;  // closed meanwhile: the operation says so
    io::throw_if(why, "wait for", *record_);
  }
  io::direction& direction = record_->in(side_);
  const io::direction::view seen = direction.look();
  if (io::direction::is_closed(seen) || is_ready()) return false;
  direction.found_nothing(seen);
  return true;
}

bool ready_arm::complete() noexcept {
  record_->in(side_).pass_on();
  return !record_->is_closed();
}

}  // namespace weft::inline v1::net
