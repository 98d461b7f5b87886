#include <new>
#include <utility>

#include "sched/lane.hpp"
#include "sched/scheduler.hpp"
#include "task/locals.hpp"
#include "task/name.hpp"

namespace weft::inline v1::sched {

void add_reference(record* t) noexcept { t->references.fetch_add(1, base::relaxed); }

void drop_reference(record* t) noexcept {
  // A sole holder needs no read-modify-write, because nobody else can make or drop a reference. acquire pairs with the
  // release below.
  if (t->references.load(base::order<"reference.sole">(base::acquire)) != 1 &&
      t->references.fetch_sub(1, base::order<"reference.drop">(base::acq_rel)) != 1)
    return;
  if (t->extras != 0) [[unlikely]] {
    if ((t->extras & task::has_heap_body) != 0)
      ::operator delete(t->body, std::align_val_t{std::size_t{1} << task::as_fiber(*t).body_alignment_log2});
    if ((t->extras & task::has_locals) != 0) task::release_locals(*t);  // the task never ran
    if ((t->extras & task::on_lane) != 0) std::exchange(t->dispatcher(), nullptr)->drop_reference();  // likewise
    t->extras = 0;
  }
  t->ops = nullptr;
  t->waits_for.store(nullptr, base::relaxed);  // the next task of this record has not waited yet
  task::clear_name(*t);
  task::as_fiber(*t).stack_size = 0;
  t->shields = 0;
  t->join_list = nullptr;
  worker* w = this_worker();
  if (w != nullptr && &w->owner().records() == task::slab::of(t)->pool) {
    w->records().put(t);
    return;
  }
  // In the child of a fork, the pool's lock may be held by a thread that does not exist there. So the record is left
  // alone.
  if (task::origin_of(*t).fork_generation != fork_generation()) return;
  t->next = nullptr;
  task::slab::of(t)->pool->release(t);
}

}  // namespace weft::inline v1::sched
