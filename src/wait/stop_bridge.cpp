#include "wait/stop_bridge.hpp"

#include <cstdint>
#include <optional>

#include "base/lock.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/stop_token.hpp>

namespace weft::inline v1 {

// Bridges are found by the address of their task and not through its record: few tasks have one, and a canceller may be
// the last who holds a reference to the record.
struct detail_bridges {
  struct bucket {
    base::lock lock;
    stop_on_cancel* first = nullptr;  // changes only under the lock
  };
  static bucket& of(const detail::task_head* t) noexcept {
    static constinit bucket buckets[64];
    return buckets[reinterpret_cast<std::uintptr_t>(t) / sizeof(task::fiber) % 64];
  }
  static void add(stop_on_cancel& b) noexcept {
    bucket& in = of(b.task_);
    base::lock_guard guard(in.lock);
    b.next_ = in.first;
    in.first = &b;
  }
  // Returns whether the task has other bridges.
  static bool remove(stop_on_cancel& b) noexcept {
    bucket& in = of(b.task_);
    base::lock_guard guard(in.lock);
    bool others = false;
    for (stop_on_cancel** p = &in.first; *p != nullptr;) {
      if (*p == &b) {
        *p = b.next_;
        continue;
      }
      others = others || (*p)->task_ == b.task_;
      p = &(*p)->next_;
    }
    return others;
  }
  // A bridge leaves its bucket under this lock, and before the scopes around it end. So `concerned` may look at them.
  template <class Concerned>
  static std::optional<std::stop_source> next_to_stop(const detail::task_head* t, Concerned concerned) noexcept {
    bucket& in = of(t);
    base::lock_guard guard(in.lock);
    for (const stop_on_cancel* b = in.first; b != nullptr; b = b->next_)
      if (b->task_ == t && !b->source_.stop_requested() && concerned(b->inside_)) return b->source_;
    return std::nullopt;
  }
  template <class Concerned>
  static void tell(const detail::task_head* t, Concerned concerned) noexcept {
    while (std::optional<std::stop_source> source = next_to_stop(t, concerned)) source->request_stop();
  }
};

namespace waits {

void tell_bridges(task::record& t) noexcept {
  detail_bridges::tell(&t, [](const void*) { return true; });
}

void tell_bridges(task::record& t, bool (*is_within)(const void* innermost, const void* scope) noexcept,
                  const void* scope) noexcept {
  detail_bridges::tell(&t, [&](const void* innermost) { return is_within(innermost, scope); });
}

}  // namespace waits

stop_on_cancel::stop_on_cancel() : task_(waits::current_task()) {
  if (task_ == nullptr) detail::throw_usage("stop_on_cancel needs a task: an outside thread cannot be cancelled");
  auto& self = *static_cast<task::record*>(task_);
  inside_ = self.scopes();
  detail_bridges::add(*this);
  if (self.word.bridge()) source_.request_stop();
}

stop_on_cancel::~stop_on_cancel() {
  auto& self = *static_cast<task::record*>(task_);
  if (!detail_bridges::remove(*this)) self.word.unbridge();
  // A canceller that saw the bit may come to the bucket too late to find this bridge there (wait.B1).
  if ((self.word.load() & task::state_word::cancel_requested) != 0) source_.request_stop();
}

}  // namespace weft::inline v1
