#include "context/shelf.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "base/check.hpp"
#include "context/guard.hpp"
#include "context/system_memory.hpp"
#include "context/valgrind.hpp"

namespace weft::inline v1::context {
namespace {

// Regions double in size, from one that a small program does not notice to one where their number stays small at a
// million stacks. The first region of large stacks has a single slot: usually only one task wants such a stack, and
// address space may be limited (RLIMIT_AS).
constexpr std::size_t first_capacity = 64;
constexpr std::size_t large_stack = std::size_t{1} << 20;
constexpr std::size_t largest_capacity = 4096;
constexpr std::size_t largest_region = std::size_t{1} << 30;

// Populates the page on which every flow starts, for many stacks in one call, because a fault for each costs more. If
// the kernel refuses, the pages come by faults.
void populate_tops(stack* chain) noexcept {
  if (chain == nullptr || chain->next == nullptr) return;
  constexpr std::size_t most = 64;
  memory_range tops[most];
  std::size_t count = 0;
  for (stack* s = chain; s != nullptr && count < most; s = s->next)
    tops[count++] = {s->base + s->size - page_size(), page_size()};
  (void)memory().advise_many(tops, count, MADV_POPULATE_WRITE);
}

}  // namespace

void shelf::open(std::size_t stack_size, guard_keeper& guards) noexcept {
  stack_size_ = stack_size;
  guards_ = &guards;
}

shelf::~shelf() {
  for (region* r = oldest_; r != nullptr;) {
    region* next = r->younger;
    region::destroy(r);
    r = next;
  }
}

shelf::taken shelf::take(std::size_t count) noexcept {
  taken result{nullptr, 0};
  stack** tail = &result.chain;
  stack* raw = nullptr;
  bool many = false;
  {
    base::lock_guard hold(lock_);
    std::size_t n = 0;
    while (n < count && warm_ != nullptr) {
      stack* s = warm_;
      warm_ = s->next;
      --s->home->warm;
      ++s->home->out;
      *tail = s;
      tail = &s->next;
      ++n;
    }
    set_warm_count(warm_count() - n);
    result.count = n;
    for (region* r; n < count && (r = find_room()) != nullptr; ++n) {
      stack* s = r->take();
      ++r->out;
      s->next = raw;
      raw = s;
    }
    many = youngest_ != oldest_;
  }
  // Outside of the lock, because these are system calls, and the stacks belong to us already.
  guards_->protect_ahead(raw);
  stack** const first_protected = tail;
  bool refused = false;
  for (stack* s = raw; s != nullptr;) {
    stack* following = s->next;
    refused = refused || !guards_->protect(*s);
    if (refused) {
      base::lock_guard hold(lock_);
      --s->home->out;
      s->home->put_clean(s);
      first_open_ = oldest_;
    } else {
      valgrind_know(*s);
      *tail = s;
      tail = &s->next;
      ++result.count;
    }
    s = following;
  }
  *tail = nullptr;
  if (many && guards_->has_calls_for_many()) populate_tops(*first_protected);
  if constexpr (base::checked_build)
    for (stack* s = result.chain; s != nullptr; s = s->next) s->free = false;
  return result;
}

void shelf::put_warm(stack* first, stack* last, std::size_t count) noexcept {
  base::lock_guard hold(lock_);
  for (stack* s = first;;) {
    stack* following = s->next;
    --s->home->out;
    ++s->home->warm;
    s->next = warm_;
    warm_ = s;
    if (s == last) break;
    s = following;
  }
  set_warm_count(warm_count() + count);
}

region* shelf::find_room() noexcept {
  while (first_open_ != nullptr && !first_open_->has_room()) first_open_ = first_open_->younger;
  for (region* r = first_open_; r != nullptr; r = r->younger)
    if (r->has_room() && (r->is_mapped() || r->map_again())) return r;
  return grow();
}

region* shelf::grow() noexcept {
  const std::size_t stride = slot_stride(guards_->size(), stack_size_);
  std::size_t capacity = stack_size_ > large_stack ? 1 : first_capacity;
  if (youngest_ != nullptr) capacity = youngest_->capacity() * 2;
  capacity = std::clamp(std::min(capacity, largest_region / stride), std::size_t{1}, largest_capacity);
  region* r = nullptr;
  // A process with little address space left (RLIMIT_AS) may still have space for a smaller region.
  for (; capacity != 0 && r == nullptr; capacity /= 2) r = region::create(capacity, stack_size_, *guards_);
  if (r == nullptr) return nullptr;
  (youngest_ == nullptr ? oldest_ : youngest_->younger) = r;
  youngest_ = r;
  if (first_open_ == nullptr) first_open_ = r;
  return r;
}

// The system calls of trim run without the lock, one region after the other. Meanwhile its victims are in no other
// place (context.I4), and a region that retires has no room for take().
std::size_t shelf::trim(std::size_t keep) noexcept {
  std::size_t trimmed = 0;
  for (region* r = choose_victims(keep); r != nullptr;) {
    region* following = r->trim_next;
    const std::size_t victims = r->victim_count;
    if (r->retiring && r->retire()) {
      base::lock_guard hold(lock_);
      r->victim_count = 0;
      r->retiring = false;
      first_open_ = oldest_;
      trimmed += victims;
    } else {
      r->give_back_pages(r->used_before);  // used() itself may grow meanwhile
      put_back(r);
      trimmed += victims;
    }
    r = following;
  }
  return trimmed;
}

// The oldest regions keep their warm stacks, whichever stack was freed last. So the younger regions become empty and
// are given back as a whole, with their records and page tables.
region* shelf::choose_victims(std::size_t keep) noexcept {
  base::lock_guard hold(lock_);
  if (warm_count() <= keep) return nullptr;
  std::size_t left = keep;
  for (region* r = oldest_; r != nullptr; r = r->younger) left -= r->quota = std::min(left, r->warm);
  stack** tail = &warm_;
  for (stack* s = warm_; s != nullptr; s = s->next) {
    region& home = *s->home;
    if (home.quota > 0) {
      --home.quota;
      *tail = s;
      tail = &s->next;
    } else {
      s->trimmed = true;
      ++home.victim_count;
      --home.warm;
    }
  }
  *tail = nullptr;
  set_warm_count(keep - left);
  region* chosen = nullptr;
  for (region* r = oldest_; r != nullptr; r = r->younger) {
    r->retiring = r->is_mapped() && r->out == 0 && r->warm == 0;
    r->used_before = r->used();
    if (!r->retiring && r->victim_count == 0) continue;
    r->trim_next = chosen;
    chosen = r;
  }
  return chosen;
}

void shelf::put_back(region* r) noexcept {
  base::lock_guard hold(lock_);
  for (std::size_t i = 0; i < r->used_before; ++i)
    if (stack& s = r->record(i); s.trimmed) {
      s.trimmed = false;
      r->put_clean(&s);
    }
  r->victim_count = 0;
  r->retiring = false;
  first_open_ = oldest_;
}

std::size_t shelf::reserved() const noexcept {
  base::lock_guard hold(lock_);
  std::size_t sum = 0;
  for (region* r = oldest_; r != nullptr; r = r->younger) sum += r->reserved();
  return sum;
}

void shelf::verify() const noexcept {
  base::lock_guard hold(lock_);
  std::size_t warm = 0;
  for (region* r = oldest_; r != nullptr; r = r->younger) {
    if (r->retiring) continue;  // trim owns it
    base::require(r->out + r->warm + r->clean_count() + r->victim_count == r->used(),
                  "context.I4: a stack is in exactly one place");
    warm += r->warm;
  }
  base::require(warm == warm_count(), "context.I4: the warm stacks are those of the regions");
  for (stack* s = warm_; s != nullptr; s = s->next) --warm;
  base::require(warm == 0, "context.I4: the warm chain is as long as it is counted");
}

}  // namespace weft::inline v1::context
