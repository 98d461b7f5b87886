#include "task/record_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

#include "context/system_memory.hpp"

namespace weft::inline v1::task {
namespace {

// slab::of masks addresses, so a slab must lie at a multiple of its size: map twice as much, and unmap what lies around
// it.
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

record* record_pool::pop_batch() noexcept {
  record* first = batches_;
  if (first == nullptr) return nullptr;
  batches_ = next_batch(*first);
  free_count_ -= batch_size;
  return first;
}

void record_pool::push_batch(record* first) noexcept {
  set_next_batch(*first, batches_);
  batches_ = first;
  free_count_ += batch_size;
}

// Takes the first records of the loose ones.
record* record_pool::cut(std::size_t& count) noexcept {
  record* first = loose_;
  record* last = first;
  std::size_t taken = 1;
  for (; taken < count && last->next != nullptr; ++taken) last = last->next;
  loose_ = last->next;
  last->next = nullptr;
  free_count_ -= taken;
  count = taken;
  return first;
}

record* record_pool::acquire(std::size_t& count) noexcept {
  base::lock_guard guard(lock_);
  if (loose_ == nullptr && batches_ == nullptr && !grow()) return nullptr;
  if (loose_ == nullptr) {
    loose_ = pop_batch();
    free_count_ += batch_size;
  }
  return cut(count);
}

record* record_pool::acquire_batch(std::size_t& count) noexcept {
  count = batch_size;
  base::lock_guard guard(lock_);
  if (batches_ == nullptr && loose_ == nullptr && !grow()) return nullptr;
  return batches_ != nullptr ? pop_batch() : cut(count);
}

void record_pool::release(record* chain) noexcept {
  record* last = chain;
  std::size_t count = 1;
  for (; last->next != nullptr; ++count) last = last->next;
  bool last_of_all = false;
  {
    base::lock_guard guard(lock_);
    last->next = loose_;
    loose_ = chain;
    free_count_ += count;
    last_of_all = retired_ && all_free();
  }
  if (last_of_all) delete this;
}

void record_pool::release_batches(record* first) noexcept {
  bool last_of_all = false;
  {
    base::lock_guard guard(lock_);
    while (first != nullptr) {
      record* next = next_batch(*first);
      push_batch(first);
      first = next;
    }
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
  // Constructs from the end, so that the lowest addresses are taken first. Records that do not fill a batch stay loose.
  constexpr std::size_t in_batches = slab::capacity / batch_size * batch_size;
  static_assert(in_batches < slab::capacity);
  record* chain = loose_;
  for (std::size_t i = slab::capacity; i-- > 0;) {
    record* r = ::new (s->at(i)) fiber(s->first_ticket);
    r->next = chain;
    chain = r;
    if (i == in_batches) loose_ = std::exchange(chain, nullptr);
    if (i < in_batches && i % batch_size == 0) push_batch(std::exchange(chain, nullptr));
  }
  free_count_ += slab::capacity - in_batches;
  // Publishes the constructed records to walk().
  s->populated.store(true, base::release);
  if (!known) {
    s->next = slabs_.load(base::relaxed);
    slabs_.store(s, base::release);  // under lock_, so one writer
    slabs_made_.store(slabs_made_.load(base::relaxed) + 1, base::relaxed);
  }
  return true;
}

void record_pool::loosen_all() noexcept {
  while (record* first = pop_batch()) {
    record* last = first;
    while (last->next != nullptr) last = last->next;
    last->next = loose_;
    loose_ = first;
    free_count_ += batch_size;
  }
}

// Marks the slabs whose records are all free (by free_seen) as not populated. Returns false if somebody walks; the
// slabs then stay as they are.
bool record_pool::close_free_slabs() noexcept {
  const auto set_populated = [this](bool populated) {
    for (slab* s = slabs_.load(base::relaxed); s != nullptr; s = s->next)
      if (s->free_seen == slab::capacity) s->populated.store(populated, base::release);
  };
  set_populated(false);
  base::step<"record_pool.trim.fence">([] { base::fence_seq_cst(); });  // task.P2; mirror in walk()
  // acquire pairs with the release at the end of a walk: what it read comes before the end of the records.
  const std::uint32_t walkers = walkers_.load(base::order<"record_pool.trim.walkers">(base::acquire));
  if (!base::check<"record_pool.trim.look">(walkers != 0)) return true;
  set_populated(true);
  return false;
}

std::optional<std::size_t> record_pool::trim() noexcept {
  base::lock_guard guard(lock_);
  if (free_count_ < slab::capacity) return 0;
  if (walkers_.load(base::relaxed) != 0) return std::nullopt;  // only a hint, which saves the work below
  loosen_all();
  for (slab* s = slabs_.load(base::relaxed); s != nullptr; s = s->next) s->free_seen = 0;
  for (record* r = loose_; r != nullptr; r = r->next) ++slab::of(r)->free_seen;
  if (!close_free_slabs()) return std::nullopt;
  record* kept = nullptr;
  std::size_t kept_count = 0;
  for (record* r = loose_; r != nullptr;) {
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
  loose_ = kept;
  free_count_ = kept_count;
  std::size_t given = 0;
  for (slab* s = slabs_.load(base::relaxed); s != nullptr; s = s->next) {
    if (s->free_seen != slab::capacity) continue;
    context::memory().advise(s->at(0), slab::bytes - slab::header_bytes, MADV_DONTNEED);
    s->next_clean = clean_;
    clean_ = s;
    ++clean_count_;
    given += slab::bytes - slab::header_bytes;
  }
  return given;
}

namespace {

// A batch that is turned round is taken in the order in which its records came, which often is that of their addresses.
// By then the records have left the processor's cache, and a chain of them is read much faster forwards.
record* turned_round(record* batch) noexcept {
  record* turned = nullptr;
  while (batch != nullptr) {
    record* next = batch->next;
    batch->next = turned;
    turned = batch;
    batch = next;
  }
  return turned;
}

}  // namespace

bool record_cache::refill() noexcept {
  if (whole_count_ != 0) {
    free_ = whole_[--whole_count_];
    count_ = batch;
  } else {
    free_ = pool_.acquire_batch(count_);
    if (free_ == nullptr) count_ = 0;
  }
  return free_ != nullptr;
}

void record_cache::set_aside() noexcept {
  if (whole_count_ == most_whole) give_back(most_whole / 2);  // the newest batches are warm, and stay
  whole_[whole_count_++] = free_;
  free_ = nullptr;
  count_ = 0;
}

void record_cache::give_back(std::size_t n) noexcept {
  record* all = nullptr;
  for (std::size_t i = 0; i < n; ++i) {
    record* batch_again = turned_round(whole_[i]);
    record_pool::set_next_batch(*batch_again, all);
    all = batch_again;
  }
  std::copy(whole_ + n, whole_ + whole_count_, whole_);
  whole_count_ -= n;
  pool_.release_batches(all);
}

void record_cache::drain() noexcept {
  if (whole_count_ != 0) give_back(whole_count_);
  if (free_ != nullptr) pool_.release(std::exchange(free_, nullptr));
  count_ = 0;
}

}  // namespace weft::inline v1::task
