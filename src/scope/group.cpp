#include "scope/group.hpp"

namespace weft::inline v1::detail {

group_core::round::~round() {
  if (first_ != nullptr) sched::drop_reference(first_);
}

group_core::group_core(sched::scheduler& in, failures policy, std::source_location where)
    : scope_core(in, nullptr, policy, where),
      owner_(identity()) {}

group_core::who group_core::identity() noexcept {
  const task::record* self = waits::current_task();
  if (self != nullptr) return {self, self->id.load(base::relaxed), {}};
  return {nullptr, 0, std::this_thread::get_id()};
}

group_core::round group_core::take_round(kept_failures failed) noexcept {
  return {std::move(failed), std::exchange(cut_short_, 0), std::exchange(first_cut_short_, nullptr)};
}

group_core::round group_core::end_round(std::source_location where) {
  for (;;) {
    drain(afterwards::open, where);
    base::lock_guard guard(lock_);
    // Somebody that is neither owner nor child may have spawned meanwhile.
    if (base::check<"group.end_round.live">(live_ != 0)) continue;
    if (std::optional<kept_failures> failed = renew()) return take_round(std::move(*failed));
  }
}

group_core::round group_core::end() {
  cancel();
  drain();
  leave();
  return take_round(std::move(failures_));
}

void group_core::failed(kin& child, std::exception_ptr why) noexcept {
  if (!echoes(why)) note_failure(std::move(why), task::as_record(child.task));
}

void group_core::ended(kin& child) noexcept {
  task::record& t = *task::as_record(child.task);
  // A child that was cancelled alone, before the group was, ended as somebody wanted it to; it does not count.
  if (task::state_word::phase_of(t.word.peek()) == task::phase::cancelled && is_cancelled()) {
    base::lock_guard guard(lock_);
    if (cut_short_++ == 0) {
      sched::add_reference(&t);
      first_cut_short_ = &t;
    }
  }
  scope_core::ended(child);
}

}  // namespace weft::inline v1::detail
