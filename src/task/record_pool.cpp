#include "task/record_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "context/system_memory.hpp"

namespace weft::inline v1::task {
namespace {

// slab::of masks addresses, so a slab lies at a multiple of its size: map twice as much and cut off what is around it.
void* map_slab() noexcept {
  const context::system_memory& memory = context::memory();
  auto* whole = static_cast<std::byte*>(memory.map(2 * slab::bytes));
  if (whole == nullptr) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(whole);
  const std::size_t before = (slab::bytes - address % slab::bytes) % slab::bytes;
  if (before != 0) memory.unmap(whole, before);
  memory.unmap(whole + before + slab::bytes, slab::bytes - before);
  return whole + before;
}

}  // namespace

record_pool::~record_pool() {
  for (slab* s = slabs_.load(base::acquire); s != nullptr;) {
    slab* next = s->next;
    context::memory().unmap(s, slab::bytes);
    s = next;
  }
}

record* record_pool::acquire(std::size_t& count) noexcept {
  base::lock_guard guard(lock_);
  if (free_ == nullptr && !grow()) return nullptr;
  record* first = free_;
  record* last = first;
  std::size_t taken = 1;
  for (; taken < count && last->next != nullptr; ++taken) last = last->next;
  free_ = last->next;
  last->next = nullptr;
  free_count_ -= taken;
  count = taken;
  return first;
}

void record_pool::release(record* chain) noexcept {
  record* last = chain;
  std::size_t count = 1;
  for (; last->next != nullptr; ++count) last = last->next;
  bool last_of_all = false;
  {
    base::lock_guard guard(lock_);
    last->next = free_;
    free_ = chain;
    free_count_ += count;
    last_of_all = retired_ && all_free();
  }
  if (last_of_all) delete this;
}

void record_pool::retire() noexcept {
  bool nobody_left = false;
  {
    base::lock_guard guard(lock_);
    retired_ = true;
    nobody_left = all_free();
  }
  if (nobody_left) delete this;
}

bool record_pool::all_free() const noexcept {
  return free_count_ == (slabs_made_.load(base::relaxed) - clean_count_) * slab::capacity;
}

bool record_pool::grow() noexcept {
  slab* s = clean_;
  const bool known = s != nullptr;
  if (known) {
    clean_ = s->next_clean;
    --clean_count_;
  } else {
    void* memory = map_slab();
    if (memory == nullptr) return false;
    s = ::new (memory) slab;
    s->pool = this;
  }
  for (std::size_t i = slab::capacity; i-- > 0;) {
    record* r = ::new (s->at(i)) record(s->first_ticket);
    r->next = free_;
    free_ = r;
  }
  free_count_ += slab::capacity;
  // Publishes the constructed records to walk().
  s->populated.store(true, base::release);
  if (!known) {
    s->next = slabs_.load(base::relaxed);
    slabs_.store(s, base::release);  // under lock_, so one writer
    slabs_made_.store(slabs_made_.load(base::relaxed) + 1, base::relaxed);
  }
  return true;
}

std::size_t record_pool::trim() noexcept {
  base::lock_guard guard(lock_);
  if (free_count_ < slab::capacity) return 0;
  for (slab* s = slabs_.load(base::relaxed); s != nullptr; s = s->next) s->free_seen = 0;
  for (record* r = free_; r != nullptr; r = r->next) ++slab::of(r)->free_seen;
  record* kept = nullptr;
  std::size_t kept_count = 0;
  for (record* r = free_; r != nullptr;) {
    record* next = r->next;
    slab* home = slab::of(r);
    if (home->free_seen == slab::capacity) {
      home->first_ticket = std::max(home->first_ticket, state_word::ticket_of(r->word.peek()));
    } else {
      r->next = kept;
      kept = r;
      ++kept_count;
    }
    r = next;
  }
  free_ = kept;
  free_count_ = kept_count;
  std::size_t given = 0;
  for (slab* s = slabs_.load(base::relaxed); s != nullptr; s = s->next) {
    if (s->free_seen != slab::capacity || !s->populated.load(base::relaxed)) continue;
    // A walker that is inside reads zeroes: INIT with ticket 0, which is as stale as it gets.
    s->populated.store(false, base::release);
    context::memory().advise(s->at(0), slab::bytes - slab::header_bytes, MADV_DONTNEED);
    s->next_clean = clean_;
    clean_ = s;
    ++clean_count_;
    given += slab::bytes - slab::header_bytes;
  }
  return given;
}

void record_cache::spill() noexcept {
  const std::size_t keep = capacity / 2;
  record* last = free_;
  for (std::size_t i = 1; i < keep; ++i) last = last->next;
  record* rest = last->next;
  last->next = nullptr;
  pool_.release(rest);  // the older half: the newest are warm
  count_ = keep;
}

}  // namespace weft::inline v1::task
