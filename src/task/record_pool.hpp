// Where the records of fibers come from: slabs that stay mapped until the runtime ends, caches of the workers, and one
// global pool behind them.
//
// Between the caches and the pool, records move in whole batches: chains of a fixed length of which only the first
// record is accessed. Free records are cold, and a walk along a chain, to cut it or to count it, would miss the cache
// at every record.
//
// task.P1. The address of a record is that of a record until shutdown. The ticket in its word never goes back, not even
//     when the pages of a wholly free slab are given back to the system (the slab's header keeps the highest ticket).
//          test task/a_record_given_back_*, task/trim_gives_whole_free_slabs_back_*, wait/a_ticket_is_not_given_again_*
// task.P2. Slabs can be walked without locks, at any time, by dumps and debuggers: while somebody walks, the records of
//     no slab are destroyed and constructed again. A walker counts itself, has a fence, and then asks which slabs are
//     populated. trim() marks slabs as not populated, has a fence, and then asks whether somebody walks.
//                              model/record_pool, test task/can_be_walked_without_locks_*, task/keeps_its_pages_while_*
// task.P3. A failed allocation leaks nothing, and the pool stays usable.                     test task/without_memory_*
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/lock.hpp"
#include "base/portion.hpp"
#include "task/origin.hpp"
#include "task/task.hpp"

namespace weft::inline v1::task {

class slab;

class record_pool {
 public:
  explicit record_pool(origin of_all = {}) noexcept : origin_(std::move(of_all)) {}
  record_pool(const record_pool&) = delete;
  record_pool& operator=(const record_pool&) = delete;

  // The origin of every record from this pool. It is for whoever still holds a record after the runtime has ended.
  [[nodiscard]] const origin& origin_of_all() const noexcept { return origin_; }

  // Chains are linked through `next`. acquire returns at least one record and up to `count`, and sets `count` to the
  // number; it returns nullptr if memory is out.
  [[nodiscard]] record* acquire(std::size_t& count) noexcept;
  void release(record* chain) noexcept;
  // The same in batches of `batch_size`, which are themselves chained through next_batch(). acquire_batch sets `count`
  // to the number of records that it returns: fewer if there is no whole batch.
  static constexpr std::size_t batch_size = 64;
  [[nodiscard]] record* acquire_batch(std::size_t& count) noexcept;
  void release_batches(record* first) noexcept;
  // The link of a batch is kept in the `body` of its first record, which a free record does not use.
  [[nodiscard]] static record* next_batch(const record& first) noexcept { return static_cast<record*>(first.body); }
  static void set_next_batch(record& first, record* next) noexcept { first.body = next; }

  // Called when the runtime ends. The pool is destroyed with the last record that somebody still holds, at once if
  // nobody does.
  void retire() noexcept;

  // Gives the pages of slabs that are wholly free back to the system, and returns the bytes. Returns nothing if
  // somebody walks; the caller then tries again later.
  std::optional<std::size_t> trim() noexcept;

  // Calls visit(record&) for every record that was ever handed out. It takes no lock, and what it sees is racy by
  // nature. The caller keeps the pool alive meanwhile.
  template <class Visit>
  void walk(Visit&& visit) const;

  [[nodiscard]] std::size_t slab_count() const noexcept { return slabs_made_.load(base::relaxed); }

 private:
  ~record_pool();
  // These need lock_.
  [[nodiscard]] bool grow() noexcept;
  [[nodiscard]] record* pop_batch() noexcept;
  void push_batch(record* first) noexcept;
  void loosen_all() noexcept;
  [[nodiscard]] record* cut(std::size_t& count) noexcept;
  [[nodiscard]] bool all_free() const noexcept;
  [[nodiscard]] bool close_free_slabs() noexcept;

  const origin origin_;
  base::lock lock_;
  bool retired_ = false;  // under lock_
  record* batches_ = nullptr;  // under lock_: the whole batches
  record* loose_ = nullptr;  // under lock_: the records in no batch
  std::size_t free_count_ = 0;  // under lock_: the records in both
  slab* clean_ = nullptr;  // under lock_: slabs whose pages were given back
  std::size_t clean_count_ = 0;  // under lock_
  base::atomic<slab*> slabs_{nullptr};  // push-only
  mutable base::atomic<std::uint32_t> walkers_{0};
  base::atomic<std::size_t> slabs_made_{0};
};

// A block of records with a header page of its own, which stays when the rest is given back.
class slab {
 public:
  static constexpr std::size_t bytes = base::portion(std::size_t{256} << 10, std::size_t{32} << 10);
  static constexpr std::size_t header_bytes = 4096;
  static constexpr std::size_t capacity = (bytes - header_bytes) / fiber_size;

  record_pool* pool = nullptr;
  slab* next = nullptr;  // in the pool's list of all slabs; written before publication
  slab* next_clean = nullptr;  // under the pool's lock
  ticket first_ticket = 0;  // the records start with this ticket when they are constructed again
  std::size_t free_seen = 0;  // how many of its records trim() has found free
  base::atomic<bool> populated{false};

  [[nodiscard]] fiber* at(std::size_t i) noexcept {
    return reinterpret_cast<fiber*>(reinterpret_cast<std::byte*>(this) + header_bytes + i * fiber_size);
  }
  [[nodiscard]] static slab* of(const record* r) noexcept {
    return reinterpret_cast<slab*>(reinterpret_cast<std::uintptr_t>(r) & ~std::uintptr_t{bytes - 1});
  }
};

[[nodiscard]] inline const origin& origin_of(const record& r) noexcept { return slab::of(&r)->pool->origin_of_all(); }

template <class Visit>
void record_pool::walk(Visit&& visit) const {
  struct counted {
    explicit counted(base::atomic<std::uint32_t>& of) noexcept : walkers(of) {
      walkers.fetch_add(1, base::relaxed);
      base::step<"record_pool.walk.fence">([] { base::fence_seq_cst(); });  // task.P2; mirror in close_free_slabs()
    }
    // release: what the walk has read comes before. Pairs with the acquire in close_free_slabs().
    ~counted() { walkers.fetch_sub(1, base::order<"record_pool.walk.end">(base::release)); }
    base::atomic<std::uint32_t>& walkers;
  } const me(walkers_);
  for (slab* s = slabs_.load(base::acquire); s != nullptr; s = s->next)
    // Pairs with the release in grow(): the records are constructed.
    if (s->populated.load(base::order<"record_pool.walk.populated">(base::acquire)))
      for (std::size_t i = 0; i < slab::capacity; ++i) visit(*s->at(i));
}

// A worker's own free records. A hit needs no atomics.
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
    // Prefetches the record of the next spawn while this one is filled in: free records are usually cold.
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
  [[nodiscard]] bool refill() noexcept;  // false if the cache is still empty
  void set_aside() noexcept;  // keeps the open batch as a whole one
  void give_back(std::size_t n) noexcept;  // gives the n oldest whole batches to the pool

  record_pool& pool_;
  record* free_ = nullptr;  // the open batch
  std::size_t count_ = 0;  // records in it
  record* whole_[most_whole];
  std::size_t whole_count_ = 0;
};

}  // namespace weft::inline v1::task
