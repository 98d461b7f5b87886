// The core's half of spawn: it makes a record with room for the body, and then puts it into a queue.
#include <bit>
#include <new>

#include "sched/scheduler.hpp"
#include "task/locals.hpp"
#include "task/name.hpp"
#include <weft/runtime.hpp>

namespace weft::inline v1::detail {
namespace {

using task::as_record;

// The worker on which we run, if it belongs to that runtime. The task then goes to that worker's own queue.
sched::worker* inside(const sched::scheduler& s) noexcept {
  sched::worker* w = sched::this_worker();
  return w != nullptr && &w->owner() == &s ? w : nullptr;
}

bool fits_inline(std::size_t size, std::size_t alignment) noexcept {
  return size <= task::fiber::inline_capacity && alignment <= alignof(std::max_align_t);
}

void give_heap_body(task::fiber* t, std::size_t size, std::size_t alignment) {
  t->body = ::operator new(size, std::align_val_t{alignment}, std::nothrow);
  if (t->body == nullptr) {
    t->owner->abandon(t);
    throw std::bad_alloc();
  }
  t->extras |= task::has_heap_body;
  t->body_alignment_log2 = static_cast<std::uint8_t>(std::countr_zero(alignment));
}

void inherit_locals(const sched::worker& w, task::record& t) noexcept {
  const task::record* parent = w.current();
  if (parent != nullptr && (parent->extras & task::has_locals) != 0) [[unlikely]]
    task::share_locals(*parent, t);
}

// The slow way: with attributes, from outside, or with a large body. Speed matters little here.
spawning begin_general(sched::scheduler& s, const attributes* a, std::size_t size, std::size_t alignment,
                       const operations* ops, bool with_handle) {
  if (s.is_forked_child())
    throw_usage("this process was forked from the one that runs the runtime; only exec or _exit are possible in it");
  std::size_t stack_size = a == nullptr ? 0 : a->stack_size;
  if (stack_size != 0) stack_size = context::stack_pool::check_size(stack_size);
  if (stack_size == s.stacks().default_size()) stack_size = 0;
  sched::worker* w = inside(s);
  if (w == nullptr && !s.ending().accepts()) throw runtime_stopped();
  task::fiber* t = w != nullptr ? s.allocate(*w, with_handle) : s.allocate_outside(with_handle);
  if (t == nullptr) throw std::bad_alloc();
  t->ops = ops;
  t->body = t->inline_body;
  if (w != nullptr) inherit_locals(*w, *t);
  if (!fits_inline(size, alignment)) give_heap_body(t, size, alignment);
  t->stack_size = static_cast<std::uint32_t>(stack_size);
  if (a != nullptr) {
    task::set_name(*t, a->name);
    s.assign(*t, a->on);
    if (a->priority == priority::urgent) t->extras |= task::is_urgent;
    if (a->priority == priority::background) t->extras |= task::is_background;
  }
  if (w == nullptr && !s.ending().admit()) {
    s.abandon(t);
    throw runtime_stopped();
  }
  return {t, t->body};
}

}  // namespace

spawning begin_spawn(sched::scheduler* in, const attributes* a, std::size_t size, std::size_t alignment,
                     const operations* ops, bool with_handle) {
  sched::worker* w = sched::this_worker();
  if (in == nullptr) {
    if (w == nullptr) [[unlikely]]
      throw_usage(
          sched::fork_generation() != 0
              ? "weft::spawn was called outside of a runtime, in a process that was forked: the runtime stayed in the "
                "parent; only exec or _exit are possible, or a new runtime"
              : "weft::spawn was called outside of a runtime: use runtime::spawn from an outside thread, or start with "
                "weft::run");
    in = &w->owner();
  }
  if (w != nullptr && in == &w->owner() && a == nullptr && fits_inline(size, alignment)) [[likely]] {
    task::fiber* t = in->allocate(*w, with_handle);
    if (t == nullptr) [[unlikely]]
      throw std::bad_alloc();
    t->ops = ops;
    t->body = t->inline_body;
    inherit_locals(*w, *t);
    return {t, t->body};
  }
  return begin_general(*in, a, size, alignment, ops, with_handle);
}

void commit_spawn(spawning s) noexcept {
  task::record* t = as_record(s.task);
  t->owner->submit(inside(*t->owner), t);
}

void abort_spawn(spawning s) noexcept {
  task::record* t = as_record(s.task);
  if (inside(*t->owner) == nullptr) t->owner->ending().forget_admitted();
  t->owner->abandon(t);
}

}  // namespace weft::inline v1::detail
