// The memory model: per-location store histories, views, vector clocks (docs/verification.md, "What is approximated").
//
// An execution is built operation by operation. The stores of an atomic object form a list, its modification order. A load
// may take any store of the list that is not older than the thread's floor for this object; a store may be put anywhere
// above the floor, except between a read-modify-write and the store it read; a read-modify-write goes directly behind
// the store it reads.
//   explore.M1. Floor: a thread's view holds, per object, the newest store it has written, read, or learnt of by synchronisation
//       (coherence: CoRR, CoRW, CoWR, CoWW follow).                                                    model/litmus
//   explore.M2. A release store carries the clock and view of its thread, a relaxed one those of the thread's last release fence; an
//       acquire load joins them, a relaxed one keeps them for the next acquire fence. A read-modify-write passes on
//       what it read (release sequence).                                                   model/litmus
//   explore.M3. One total order S: the order in which seq_cst operations and fences are executed. A seq_cst operation's floor
//       includes every seq_cst operation on that object before it in S and everything that happened before a seq_cst
//       fence before it in S. A seq_cst fence raises the view of its thread, for all objects, by the same. model/litmus
//   explore.M4. Plain accesses, and the beginning and end of an object's life, must be ordered by happens-before (clocks).
//       model/race_of_two_writes, model/no_race_through_release_acquire, model/use_after_free
#pragma once

#include <algorithm>
#include <cstdint>

#include "explore/host.hpp"
#include "explore/ops.hpp"

namespace explore {

inline constexpr int max_threads = 8;

using stamp = std::uint32_t;  // place in the modification order of one object; 0 is before everything

struct vector_clock {
  std::uint32_t at[max_threads] = {};
  void join(const vector_clock& other) {
    for (int i = 0; i < max_threads; ++i) at[i] = std::max(at[i], other.at[i]);
  }
};

// Per object (by its number) the newest store known. Lives in scratch memory.
struct view {
  stamp* at = nullptr;
  std::uint32_t size = 0;
  std::uint32_t capacity = 0;

  stamp operator[](std::uint32_t object) const { return object < size ? at[object] : 0; }
  void raise(std::uint32_t object, stamp s, scratch& memory);
  void join(const view& other, scratch& memory);
  view copy(scratch& memory) const;

 private:
  void grow(std::uint32_t n, scratch& memory);
};

// What synchronisation hands over.
struct knowledge {
  vector_clock clock;
  view seen;
  void join(const knowledge& other, scratch& memory) {
    clock.join(other.clock);
    seen.join(other.seen, memory);
  }
  knowledge copy(scratch& memory) const { return {clock, seen.copy(memory)}; }
};

struct stored {
  word value = 0;
  stamp place = 0;
  std::int8_t thread = -1;  // -1: initial value
  bool is_rmw = false;  // directly behind the store it read
  bool carries = false;  // `message` is not empty
  std::uint8_t read_by = 0;  // threads that have read it
  vector_clock cause;  // what comes before it by program order and reads-from, of any memory order
  word uid = 0;
  knowledge message;
};

struct last_access {
  std::uint32_t clock = 0;
  where at{};
};

struct object {
  const void* address = nullptr;
  const char* name = nullptr;
  std::uint32_t number = 0;
  std::uint32_t in_view = 0;  // atomics are numbered apart, so that views stay short
  word uid = 0;  // the same in every execution that creates it in the same way
  bool alive = false;
  bool is_plain = false;
  bool watched = false;  // explore::watch_slots
  std::int8_t creator = -1;  // -1: before the execution
  std::uint32_t created = 0;  // clock of the creator
  last_access touched[max_threads];  // any access
  last_access wrote[max_threads];  // plain writes
  host_vector<stored> order;  // modification order
  word order_hash = 0;
  stamp sc = 0;  // explore.M3: S's floor for this object
  word sc_uid = 0;
};

struct thread_memory {
  knowledge now;
  vector_clock cause;  // as stored::cause
  knowledge released;  // at the last release fence
  knowledge pending;  // from relaxed loads, for the next acquire fence
  bool has_released = false;
  bool has_pending = false;
  word history = 0;  // hash of everything this thread has read: its local state follows from it
  std::uint32_t created = 0;  // objects made so far
  std::uint32_t stores = 0;
  std::uint32_t dull = 0;  // reads in a row that brought nothing new
  std::uint32_t past = 0;  // writes that went below a newer store
};

// One option of a load, store or read-modify-write.
struct place_option {
  std::uint32_t index;  // into object::order: the store read, or the one to go behind
  bool succeeds;  // compare-exchange
};

struct memory_limits {
  std::uint32_t history = 6;  // stores of one object a thread may choose among
  std::uint32_t past =
      2;  // writes of one thread that may go below newer stores, so that nobody spins in the past for ever
  std::uint32_t dull =
      4;  // after so many reads that bring nothing new, a store read before is not read again if there is a newer
};

class memory_model {
 public:
  memory_limits limits;
  thread_memory threads[max_threads];

  void reset();
  void fork(int parent, int child);
  void join(int parent, int child);

  object& born(int t, const void* address, word initial, bool is_plain, where);
  // nullptr: no such object. `made_before` registers objects from before the execution on their first use.
  object* find(const void* address);
  object& made_before(const void* address, word initial, bool is_plain);
  host_vector<object>& objects() { return objects_; }
  std::uint32_t object_count() const { return count_; }

  // Null, or what is wrong with this access: not alive, or not ordered after construction or another access.
  const char* check_atomic(int t, object&, where);
  const char* check_plain(int t, object&, bool write, where);
  const char* check_end(int t, object&);

  // A load of this object comes before the coming store of thread t by program order and reads-from, but does not happen
  // before it: C++ lets the load return what is stored (load buffering), which executions in program order never show.
  bool may_be_read_from_the_future(int t, const object&) const;

  void load_options(int t, const object&, memory_order, host_vector<place_option>&) const;
  void store_options(int t, const object&, memory_order, host_vector<place_option>&) const;
  void modify_options(int t, const object&, memory_order, host_vector<place_option>&) const;
  void exchange_options(int t, const object&, memory_order success, memory_order failure, word expected,
                        host_vector<place_option>&) const;

  word do_load(int t, object&, std::uint32_t index, memory_order);
  void do_store(int t, object&, std::uint32_t behind, word value, memory_order);
  void do_modify(int t, object&, std::uint32_t index, word value, memory_order);
  void do_fence(int t, memory_order);
  // The kernel orders waits and wakes on one word; it orders nothing else for us.
  void publish_word(int t, object&);
  stamp futex_floor(int t, const object& o) const { return std::max(threads[t].now.seen[o.in_view], o.sc); }
  void futex_options(int t, const object&, host_vector<place_option>&) const;

  void event(int t, word what) { threads[t].history = mix(threads[t].history, what); }
  word hash() const { return order_sum_ + sc_sum_; }

 private:
  object& add(const void* address, word initial, bool is_plain);
  void readable(int t, const object&, stamp floor, host_vector<place_option>&) const;
  stamp floor(int t, const object&, memory_order) const;
  bool may_go_behind(int t, const object&, std::uint32_t index) const;
  std::uint32_t insert(int t, object&, std::uint32_t behind, word value, bool is_rmw);
  void note_read(int t, object&, std::uint32_t index, memory_order);
  void raise_sc(object&, stamp, word uid);
  void rehash(object&);
  word uid_at(const object&, stamp) const;

  scratch scratch_;
  host_vector<object> objects_;
  std::uint32_t count_ = 0;
  std::uint32_t atomics_ = 0;
  word order_sum_ = 0;
  word sc_sum_ = 0;

  struct slot {
    const void* address;
    std::uint32_t number;
    std::uint32_t epoch;
  };
  static constexpr std::size_t slots = 8192;
  slot table_[slots] = {};
  std::uint32_t epoch_ = 0;
  slot& slot_of(const void* address);
};

}  // namespace explore
