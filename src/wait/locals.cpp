// The running task's half of task_local.
#include "task/locals.hpp"

#include <algorithm>
#include <new>

#include "base/check.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/task_local.hpp>

namespace weft::inline v1::detail {

local_binding* make_binding(const void* key, std::size_t size, std::size_t alignment, void (*destroy)(void*) noexcept) {
  const std::size_t aligned = std::max(alignment, alignof(local_binding));
  const std::size_t offset = (sizeof(local_binding) + aligned - 1) / aligned * aligned;
  void* room = ::operator new(offset + size, std::align_val_t{aligned});
  return ::new (room) local_binding{nullptr, key, destroy, offset, aligned};
}

void* value_of(local_binding* b) noexcept { return b->value(); }

void discard_binding(local_binding* b) noexcept {
  b->destroy = nullptr;
  task::drop_binding(b);
}

void bind_local(local_binding* b) noexcept {
  task::record& self = *waits::current_task();
  b->outer = self.locals();  // the new binding takes over the task's reference to the outer one
  self.locals() = b;
  self.extras |= task::has_locals;
}

void unbind_local(local_binding* b) noexcept {
  task::record* self = waits::current_task();
  if (self == nullptr) return;  // in the child of a fork no task runs
  if (self->locals() != b) base::fail("bindings of task-local values end in another order than they were made in");
  self->locals() = b->outer;
  if (self->locals() == nullptr)
    self->extras &= static_cast<task::extra>(~task::has_locals);
  else
    self->locals()->references.fetch_add(1, base::relaxed);
  task::drop_binding(b);
}

const void* find_local(const void* key) noexcept {
  const task::record* self = waits::current_task();
  if (self == nullptr || (self->extras & task::has_locals) == 0) return nullptr;
  for (local_binding* b = self->locals(); b != nullptr; b = b->outer)
    if (b->key == key) return b->value();
  return nullptr;
}

void require_task(const char* what) {
  if (waits::current_task() == nullptr) throw_usage(what);
}

}  // namespace weft::inline v1::detail
