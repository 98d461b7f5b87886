#include "wait/stop_bridge.hpp"

#include <cstdint>
#include <optional>

#include "base/lock.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/stop_token.hpp>

namespace weft::inline v1 {

// By the task's address, not in its record: few tasks have one, and a canceller may be the last who knows the record.
struct detail_bridges {
  struct bucket {
    base::lock lock;
    stop_on_cancel* first = nullptr;  // under the lock
  };
  static bucket& of(const detail::task_head* t) noexcept {
    static constinit bucket buckets[64];
    return buckets[reinterpret_cast<std::uintptr_t>(t) / sizeof(task::record) % 64];
  }
  static void add(stop_on_cancel& b) noexcept {
    bucket& in = of(b.task_);
    base::lock_guard guard(in.lock);
    b.next_ = in.first;
    in.first = &b;
  }
  // False: it was the task's last.
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
  static std::optional<std::stop_source> next_to_stop(const detail::task_head* t) noexcept {
    bucket& in = of(t);
    base::lock_guard guard(in.lock);
    for (const stop_on_cancel* b = in.first; b != nullptr; b = b->next_)
      if (b->task_ == t && !b->source_.stop_requested()) return b->source_;
    return std::nullopt;
  }
};

namespace wait {

void tell_bridges(task::record& t) noexcept {
  while (std::optional<std::stop_source> source = detail_bridges::next_to_stop(&t)) source->request_stop();
}

}  // namespace wait

stop_on_cancel::stop_on_cancel() : task_(wait::current_task()) {
  if (task_ == nullptr) detail::throw_usage("stop_on_cancel needs a task: an outside thread cannot be cancelled");
  detail_bridges::add(*this);
  if (static_cast<task::record*>(task_)->word.bridge()) source_.request_stop();
}

stop_on_cancel::~stop_on_cancel() {
  if (!detail_bridges::remove(*this)) static_cast<task::record*>(task_)->word.unbridge();
}

}  // namespace weft::inline v1
