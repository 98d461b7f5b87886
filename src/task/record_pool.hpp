// Where records come from: slabs that stay mapped until the runtime goes, per-worker caches, one global fallback.
//
// Between the caches and the pool records travel in whole batches: chains of a fixed length of which only the first record is
// touched. Free records are cold, and a walk along them to cut off or to count would miss the caches at every step.
//
// P1. A record's address is a record's address until shutdown; its word's ticket never goes back, not even when the pages
//     of a whole free slab are given back to the system (the slab's header keeps the highest ticket).  test task/recycle_*
// P2. Slabs can be walked without locks, at any time, by dumps and debuggers: while somebody walks, no slab's records end and begin
//     again. Who walks is counted, has a fence and then asks which slabs are populated; who trims says that they are not, has a fence
//     and then asks whether somebody walks.                                                              test task/walk_*, model/record_pool
// P3. A failed allocation leaks nothing; the pool stays usable.                                         test task/record_pool_*
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <string_view>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/lock.hpp"
#include "base/portion.hpp"
#include "task/task.hpp"

namespace weft::inline v1::task {

class slab;

class record_pool {
 public:
  record_pool() = default;
  record_pool(const record_pool&) = delete;
  record_pool& operator=(const record_pool&) = delete;

  // Of the runtime, and wanted by whoever still holds a record when it has gone. Set once, before the first acquire.
  std::function<void(std::string_view task, std::exception_ptr error)> on_unhandled;
  std::uint32_t fork_generation = 0;

  // Chains through `next`. acquire gives at least one and up to `count`, and says how many; nullptr when memory is out.
  [[nodiscard]] record* acquire(std::size_t& count) noexcept;
  void release(record* chain) noexcept;
  // The same in batches of `batch_size`, themselves chained through next_batch(). acquire_batch says how many records it gives:
  // fewer if there is no whole batch.
  static constexpr std::size_t batch_size = 64;
  [[nodiscard]] record* acquire_batch(std::size_t& count) noexcept;
  void release_batches(record* first) noexcept;
  // Of a batch's first record, which is free: its body is nobody's.
  [[nodiscard]] static record* next_batch(const record& first) noexcept { return static_cast<record*>(first.body); }
  static void set_next_batch(record& first, record* next) noexcept { first.body = next; }

  // The runtime is gone. The pool goes with the last record that somebody still holds, at once if nobody does.
  void retire() noexcept;

  // Gives the pages of slabs that are wholly free back to the system; returns the bytes. Not while somebody walks: nothing is
  // returned, and it is to be called again.
  std::optional<std::size_t> trim() noexcept;

  // Calls visit(record&) for every record ever handed out; no lock, racy by nature. The caller keeps the pool from going meanwhile.
  template <class Visit>
  void walk(Visit&& visit) const;

  [[nodiscard]] std::size_t slab_count() const noexcept { return slabs_made_.load(base::relaxed); }

 private:
  ~record_pool();
  // Under lock_.
  [[nodiscard]] bool grow() noexcept;
  [[nodiscard]] record* pop_batch() noexcept;
  void push_batch(record* first) noexcept;
  void loosen_all() noexcept;
  [[nodiscard]] record* cut(std::size_t& count) noexcept;
  [[nodiscard]] bool all_free() const noexcept;
  [[nodiscard]] bool close_free_slabs() noexcept;

  base::lock lock_;
  bool retired_ = false;  // under lock_
  record* batches_ = nullptr;  // under lock_: whole ones
  record* loose_ = nullptr;  // under lock_: those in no batch
  std::size_t free_count_ = 0;  // under lock_: of both
  slab* clean_ = nullptr;  // under lock_: slabs whose pages were given back
  std::size_t clean_count_ = 0;  // under lock_
  base::atomic<slab*> slabs_{nullptr};  // push-only
  mutable base::atomic<std::uint32_t> walkers_{0};
  base::atomic<std::size_t> slabs_made_{0};
};

// A stretch of records with a header page of its own, which stays when the rest is given back.
class slab {
 public:
  static constexpr std::size_t bytes = base::portion(std::size_t{256} << 10, std::size_t{32} << 10);
  static constexpr std::size_t header_bytes = 4096;
  static constexpr std::size_t capacity = (bytes - header_bytes) / record_size;

  record_pool* pool = nullptr;
  slab* next = nullptr;  // in the pool's list of all slabs; written before publication
  slab* next_clean = nullptr;  // under the pool's lock
  ticket first_ticket = 0;  // the next life of these records starts here
  std::size_t free_seen = 0;  // trim's count
  base::atomic<bool> populated{false};

  [[nodiscard]] record* at(std::size_t i) noexcept {
    return reinterpret_cast<record*>(reinterpret_cast<std::byte*>(this) + header_bytes + i * record_size);
  }
  [[nodiscard]] static slab* of(const record* r) noexcept {
    return reinterpret_cast<slab*>(reinterpret_cast<std::uintptr_t>(r) & ~std::uintptr_t{bytes - 1});
  }
};

template <class Visit>
void record_pool::walk(Visit&& visit) const {
  struct counted {
    explicit counted(base::atomic<std::uint32_t>& of) noexcept : walkers(of) {
      walkers.fetch_add(1, base::relaxed);
      base::step<"record_pool.walk.fence">([] { base::fence_seq_cst(); });  // P2; mirror in close_free_slabs()
    }
    // What was read comes before; pairs with the acquire in close_free_slabs().
    ~counted() { walkers.fetch_sub(1, base::order<"record_pool.walk.end">(base::release)); }
    base::atomic<std::uint32_t>& walkers;
  } const me(walkers_);
  for (slab* s = slabs_.load(base::acquire); s != nullptr; s = s->next)
    // Pairs with the release in grow(): the records are constructed.
    if (s->populated.load(base::order<"record_pool.walk.populated">(base::acquire)))
      for (std::size_t i = 0; i < slab::capacity; ++i) visit(*s->at(i));
}

// A worker's own free records: no atomics on a hit.
class record_cache {
 public:
  static constexpr std::size_t batch = record_pool::batch_size;
  static constexpr std::size_t most_whole = 16;
  static constexpr std::size_t capacity = (most_whole + 1) * batch;

  explicit record_cache(record_pool& pool) noexcept : pool_(pool) {}
  ~record_cache() { drain(); }
  record_cache(const record_cache&) = delete;
  record_cache& operator=(const record_cache&) = delete;

  [[nodiscard]] record* take() noexcept {
    if (free_ == nullptr && !refill()) [[unlikely]]
      return nullptr;
    record* r = free_;
    free_ = r->next;
    --count_;
    // The next spawn's record, fetched while this one is filled in: free records are usually cold.
    if (free_ != nullptr) base::prefetch(free_, 3);
    return r;
  }
  void put(record* r) noexcept {
    if (count_ == batch) [[unlikely]]
      set_aside();
    r->next = free_;
    free_ = r;
    ++count_;
  }
  void drain() noexcept;

 private:
  [[nodiscard]] bool refill() noexcept;  // false: still empty
  void set_aside() noexcept;  // what is open, as a whole batch
  void give_back(std::size_t n) noexcept;  // the oldest whole batches to the pool

  record_pool& pool_;
  record* free_ = nullptr;  // the open batch
  std::size_t count_ = 0;  // of it
  record* whole_[most_whole];
  std::size_t whole_count_ = 0;
};

}  // namespace weft::inline v1::task
