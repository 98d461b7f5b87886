#include "context/region.hpp"

#include <sched.h>
#include <sys/mman.h>

#include <new>

#include "base/check.hpp"
#include "base/lock.hpp"
#include "context/guard.hpp"
#include "context/system_memory.hpp"
#include "context/valgrind.hpp"

namespace weft::inline v1::context {
namespace {

// All live regions of all pools. Writers take the lock. find() takes no lock: it counts itself as a walker and walks
// the list.
constinit base::lock listing;
constinit base::atomic<region*> listed{nullptr};
constinit base::atomic<std::size_t> walkers{0};

// There are 32 starting points over half a page. Those of neighbours differ by more than a line, because a flow uses
// lines that lie next to each other.
std::uint16_t colour_of(std::size_t slot) noexcept {
  constexpr std::size_t colours = 2048 / base::cache_line;
  return static_cast<std::uint16_t>(slot * 13 % colours * base::cache_line);
}

}  // namespace

region::region(std::size_t capacity, std::size_t stack_size, std::size_t records_bytes, guard_keeper& guards) noexcept
    : capacity_(capacity),
      stack_size_(stack_size),
      stride_(slot_stride(guards.size(), stack_size)),
      records_bytes_(records_bytes),
      guards_(guards) {}

region* region::create(std::size_t capacity, std::size_t stack_size, guard_keeper& guards) noexcept {
  const std::size_t bytes = round_to_pages(sizeof(region) + capacity * sizeof(stack));
  void* at = memory().map(bytes);
  if (at == nullptr) return nullptr;
  auto* r = new (at) region(capacity, stack_size, bytes, guards);
  if (!r->map_again()) {
    memory().unmap(at, bytes);
    return nullptr;
  }
  r->list();
  return r;
}

bool region::map_again() noexcept {
  void* at = memory().map(capacity_ * stride_);
  if (at == nullptr) return false;
  // A fiber touches one page; a huge page for eight fibers would be 512 times that. This is only advice, and a refusal
  // does no harm.
  memory().advise(at, capacity_ * stride_, MADV_NOHUGEPAGE);
  used_ = 0;
  // Pairs with the acquire in find(): a handler that sees the address sees the rest of the region.
  begin_.store(reinterpret_cast<std::uintptr_t>(at), base::release);
  return true;
}

void region::destroy(region* r) noexcept {
  r->unlist();
  if (r->is_mapped()) (void)r->unmap_slots();
  memory().unmap(r, r->records_bytes_);  // region and stack have trivial destructors
}

bool region::unmap_slots() noexcept {
  const std::uintptr_t begin = begin_.load(base::relaxed);
  for (std::size_t i = 0; i < used_; ++i) asan_forget(records()[i].base, stack_size_);
  begin_.store(0, base::relaxed);
  if (memory().unmap(reinterpret_cast<void*>(begin), capacity_ * stride_) != 0) {
    begin_.store(begin, base::relaxed);
    return false;
  }
  for (std::size_t i = 0; i < used_; ++i) {
    guards_.forget(records()[i]);
    valgrind_forget(records()[i]);
  }
  return true;
}

stack* region::take() noexcept {
  if (stack* s = clean_) {
    clean_ = s->next;
    --clean_count_;
    return s;
  }
  if (used_ == capacity_) return nullptr;
  auto* slot = reinterpret_cast<std::byte*>(begin_.load(base::relaxed)) + used_ * stride_;
  auto* s = new (&records()[used_]) stack;
  s->base = slot + (stride_ - stack_size_);
  s->size = stack_size_;
  s->home = this;
  s->colour = colour_of(used_);
  ++used_;
  return s;
}

void region::put_clean(stack* s) noexcept {
  s->next = clean_;
  clean_ = s;
  ++clean_count_;
}

bool region::retire() noexcept {
  // The system refuses with ENOMEM if the region lies amid merged mappings and no mapping is left to split them.
  if (!unmap_slots()) return false;
  used_ = 0;
  clean_ = nullptr;
  clean_count_ = 0;
  // A million records are 64 MB. A reader that still looks at one (context.I6) sees zeros.
  auto* first_page = reinterpret_cast<std::byte*>(round_to_pages(reinterpret_cast<std::uintptr_t>(this + 1)));
  auto* end = reinterpret_cast<std::byte*>(this) + records_bytes_;
  if (first_page < end) memory().advise(first_page, static_cast<std::size_t>(end - first_page), MADV_DONTNEED);
  return true;
}

void region::give_back_pages(std::size_t count) noexcept {
  for (std::size_t i = 0; i < count;) {
    const std::size_t first = i;
    while (i < count && records()[i].trimmed) ++i;
    if (i == first) {
      ++i;
      continue;
    }
    // One call for the whole run of stacks; the guards in between survive it (context.I5).
    std::byte* from = records()[first].base;
    std::byte* to = records()[i - 1].base + stack_size_;
    memory().advise(from, static_cast<std::size_t>(to - from), MADV_DONTNEED);
  }
}

void region::list() noexcept {
  base::lock_guard hold(listing);
  listed_next_.store(listed.load(base::relaxed), base::relaxed);
  listed.store(this, base::release);  // pairs with the load in find(): the region is complete
}

void region::unlist() noexcept {
  {
    base::lock_guard hold(listing);
    base::atomic<region*>* link = &listed;
    while (link->load(base::relaxed) != this) link = &link->load(base::relaxed)->listed_next_;
    link->store(listed_next_.load(base::relaxed), base::seq_cst);
  }
  // Mirror of find(): either find() counted itself as a walker before our store, and we see it here, or it does not
  // find us any more. A handler that is about to abort never leaves, but then this thread does not matter either.
  while (walkers.load(base::seq_cst) != 0) ::sched_yield();
}

region::found region::find(std::uintptr_t address) noexcept {
  found result{nullptr, false};
  walkers.fetch_add(1, base::seq_cst);
  for (region* r = listed.load(base::seq_cst); r != nullptr; r = r->listed_next_.load(base::seq_cst)) {
    const std::uintptr_t begin = r->begin_.load(base::acquire);
    if (begin == 0 || address < begin || address - begin >= r->capacity_ * r->stride_) continue;
    const std::size_t slot = (address - begin) / r->stride_;
    const stack& s = r->records()[slot];
    if (s.base != nullptr) result = {&s, (address - begin) % r->stride_ < r->stride_ - r->stack_size_};
    break;
  }
  walkers.fetch_sub(1, base::seq_cst);
  return result;
}

}  // namespace weft::inline v1::context
