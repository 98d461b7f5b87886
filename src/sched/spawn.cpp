// The core's half of spawn: a record with room for the body, then into a queue.
#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "sched/scheduler.hpp"
#include "task/name.hpp"
#include "weft/runtime.hpp"

namespace weft::inline v1::detail {
namespace {

task::record* as_record(task_head* t) noexcept { return static_cast<task::record*>(t); }

sched::scheduler& choose(sched::scheduler* in, sched::worker* w) {
  if (in == nullptr) {
    if (w == nullptr)
      throw_usage(
          "weft::spawn was called outside of a runtime: use runtime::spawn from an outside thread, or start with weft::run");
    return w->owner();
  }
  if (in->is_forked_child())
    throw_usage("this process was forked from the one that runs the runtime; only exec or _exit are possible in it");
  return *in;
}

// Everything that may throw comes before the record is taken.
std::size_t checked_stack_size(const attributes* a, sched::scheduler& s) {
  if (a == nullptr || a->stack_size == 0) return 0;
  const std::size_t size = context::stack_pool::check_size(a->stack_size);
  return size == s.stacks().default_size() ? 0 : size;
}

}  // namespace

spawning begin_spawn(sched::scheduler* in, const attributes* a, std::size_t size, std::size_t alignment,
                     const operations* ops, bool with_handle) {
  sched::worker* w = sched::this_worker();
  sched::scheduler& s = choose(in, w);
  const bool inside = w != nullptr && &w->owner() == &s;
  const std::size_t stack_size = checked_stack_size(a, s);
  if (!inside && !s.accepts()) throw runtime_stopped();
  task::record* t = s.allocate(inside ? w : nullptr, with_handle);
  if (t == nullptr) throw std::bad_alloc();
  t->ops = ops;
  if (size <= task::record::inline_capacity && alignment <= alignof(std::max_align_t)) [[likely]] {
    t->body = t->inline_body;
  } else {
    t->body = ::operator new(size, std::align_val_t{alignment}, std::nothrow);
    if (t->body == nullptr) {
      s.abandon(t);
      throw std::bad_alloc();
    }
    t->heap_body = true;
    t->body_alignment_log2 = static_cast<std::uint8_t>(std::countr_zero(alignment));
  }
  if (a != nullptr) {
    t->stack_size = static_cast<std::uint32_t>(stack_size);
    task::set_name(*t, a->name);
  }
  if (!inside && !s.admit_from_outside()) {
    s.abandon(t);
    throw runtime_stopped();
  }
  return {t, t->body};
}

void commit_spawn(spawning s) noexcept {
  task::record* t = as_record(s.task);
  t->owner->submit(t);
}

void abort_spawn(spawning s) noexcept {
  task::record* t = as_record(s.task);
  t->owner->forget_admitted();
  t->owner->abandon(t);
}

}  // namespace weft::inline v1::detail
