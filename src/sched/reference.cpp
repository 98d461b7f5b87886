#include <new>

#include "sched/scheduler.hpp"
#include "task/name.hpp"

namespace weft::inline v1::sched {

void add_reference(record* t) noexcept { t->references.fetch_add(1, base::relaxed); }

void drop_reference(record* t) noexcept {
  // A sole holder needs no read-modify-write: nobody else can make or drop one. acquire pairs with the release below.
  if (t->references.load(base::order<"reference.sole">(base::acquire)) != 1 &&
      t->references.fetch_sub(1, base::order<"reference.drop">(base::acq_rel)) != 1)
    return;
  if (t->heap_body) {
    ::operator delete(t->body, std::align_val_t{std::size_t{1} << t->body_alignment_log2});
    t->heap_body = false;
  }
  t->ops = nullptr;
  task::clear_name(*t);
  t->stack_size = 0;
  t->shields = 0;
  t->exceptions = {};
  t->join_list = nullptr;
  worker* w = this_worker();
  if (w != nullptr && &w->owner().records() == task::slab::of(t)->pool) {
    w->records().put(t);
    return;
  }
  // In the child of a fork the pool's lock may be held by a thread that does not exist there: the record is left alone.
  if (task::slab::of(t)->pool->fork_generation != fork_generation()) return;
  t->next = nullptr;
  task::slab::of(t)->pool->release(t);
}

}  // namespace weft::inline v1::sched
