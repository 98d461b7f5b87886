// Records (src/task/record_pool.*): a walk without locks against a trim.
// sources: task/record_pool.cpp task/state.cpp task/locals.cpp context/system_memory.cpp
// abstract lock
//
// task.P2. While somebody walks, no slab's records end and begin again: what a walk meets is a record, from its beginning to its end (an
//     access before the one or after the other is an error here).
#include "task/record_pool.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "context/system_memory.hpp"
#include "explore/explore.hpp"

using explore::join_all;
using explore::thread;
using weft::task::fiber;
using weft::task::record;
using weft::task::record_pool;
using weft::task::slab;
namespace base = weft::base;
namespace context = weft::context;

namespace {

// Memory of the execution. The pool maps twice what it needs, and unmaps what it cuts off.
bool cuts_off = false;

void* map(std::size_t size) noexcept {
  cuts_off = true;
  return ::operator new(size / 2, std::align_val_t{slab::bytes});
}

// The records' life ends when their pages are given back.
int end_records(void* first, std::size_t, int) noexcept {
  std::destroy_n(static_cast<fiber*>(first), slab::capacity);
  return 0;
}

int unmap(void* begin, std::size_t) noexcept {
  if (std::exchange(cuts_off, false)) return 0;
  auto* s = static_cast<slab*>(begin);
  if (s->populated.load(base::relaxed)) end_records(s->at(0), 0, 0);
  std::destroy_at(s);
  ::operator delete(begin, std::align_val_t{slab::bytes});
  return 0;
}

constexpr context::system_memory of_the_execution{map, unmap, end_records, nullptr, nullptr};

record* take(record_pool& from) {
  std::size_t count = 1;
  return from.acquire(count);
}

void put_back(record_pool& to, record* r) {
  r->next = nullptr;
  to.release(r);
}

}  // namespace

// The records end in a trim, and begin again for the next task.
// req: LS-M1
MODEL_TEST(record_pool_walk_against_trim, .steps = 20'000) {
  const context::replace_system_memory replaced(of_the_execution);
  auto* pool = new record_pool;
  record* first = take(*pool);
  put_back(*pool, first);
  thread([&] {
    pool->walk([&](const record& r) {
      if (&r == first) (void)r.word.load();
    });
  });
  thread([&] {
    if (pool->trim().value_or(0) != 0) put_back(*pool, take(*pool));
  });
  join_all();
  pool->retire();
}

// A trim that meets a walk marks the slabs as not populated, and takes that back.
MODEL_TEST(record_pool_walk_after_a_trim_that_was_given_up, .steps = 20'000) {
  const context::replace_system_memory replaced(of_the_execution);
  auto* pool = new record_pool;
  record* first = take(*pool);
  put_back(*pool, first);
  bool trimmed = false;
  thread([&] { pool->walk([](const record&) {}); });
  thread([&] { trimmed = pool->trim().has_value(); });
  join_all();
  bool seen = false;
  pool->walk([&](const record& r) { seen = seen || &r == first; });
  model_assert(seen == !trimmed);
  pool->retire();
}
