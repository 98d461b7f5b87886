#include "explore/memory.hpp"

namespace explore {
namespace {

constexpr stamp gap = 1u << 12;

bool acquires(memory_order o) {
  return o == std::memory_order_acquire || o == std::memory_order_acq_rel || o == std::memory_order_seq_cst;
}
bool releases(memory_order o) {
  return o == std::memory_order_release || o == std::memory_order_acq_rel || o == std::memory_order_seq_cst;
}
bool is_sc(memory_order o) { return o == std::memory_order_seq_cst; }

}  // namespace

// ---- views

void view::grow(std::uint32_t n, scratch& memory) {
  if (n > capacity) {
    capacity = std::max(n, 2 * capacity) + 8;
    auto* bigger = static_cast<stamp*>(memory.take(capacity * sizeof(stamp)));
    std::copy(at, at + size, bigger);
    at = bigger;
  }
  std::fill(at + size, at + n, 0);
  size = n;
}

void view::raise(std::uint32_t object, stamp s, scratch& memory) {
  if (object >= size) grow(object + 1, memory);
  at[object] = std::max(at[object], s);
}

void view::join(const view& other, scratch& memory) {
  if (other.size > size) grow(other.size, memory);
  for (std::uint32_t i = 0; i < other.size; ++i) at[i] = std::max(at[i], other.at[i]);
}

view view::copy(scratch& memory) const {
  view v;
  v.size = v.capacity = size;
  v.at = static_cast<stamp*>(memory.take(size * sizeof(stamp)));
  std::copy(at, at + size, v.at);
  return v;
}

// ---- life of objects and threads

void memory_model::reset() {
  scratch_.reset();
  count_ = atomics_ = 0;
  order_sum_ = sc_sum_ = 0;
  ++epoch_;
  for (thread_memory& t : threads) t = thread_memory{};
}

void memory_model::fork(int parent, int child) {
  thread_memory& p = threads[parent];
  threads[child].now = p.now.copy(scratch_);
  threads[child].now.clock.at[child] = 1;
  threads[child].cause = p.cause;
  threads[child].cause.join(p.now.clock);
  ++p.now.clock.at[parent];
}

void memory_model::join(int parent, int child) { threads[parent].now.join(threads[child].now, scratch_); }

memory_model::slot& memory_model::slot_of(const void* address) {
  std::size_t i = mix(0, reinterpret_cast<std::uintptr_t>(address)) % slots;
  while (table_[i].epoch == epoch_ && table_[i].address != address) i = (i + 1) % slots;
  return table_[i];
}

object* memory_model::find(const void* address) {
  slot& s = slot_of(address);
  return s.epoch == epoch_ ? &objects_[s.number] : nullptr;
}

object& memory_model::add(const void* address, word initial, bool is_plain) {
  if (count_ > slots / 2) std::abort();  // far too many objects to explore
  if (count_ == objects_.size()) objects_.emplace_back();
  object& o = objects_[count_];
  host_vector<stored> order = std::move(o.order);
  order.clear();
  o = object{};
  o.order = std::move(order);
  o.address = address;
  o.number = count_++;
  o.alive = true;
  o.is_plain = is_plain;
  if (!is_plain) {
    o.in_view = atomics_++;
    stored first;
    first.value = initial;
    first.place = gap;
    o.order.push_back(first);
  }
  slot& s = slot_of(address);
  s = {address, o.number, epoch_};
  return o;
}

object& memory_model::born(int t, const void* address, word initial, bool is_plain, where w) {
  object& o = add(address, initial, is_plain);
  thread_memory& me = threads[t];
  o.creator = static_cast<std::int8_t>(t);
  o.created = ++me.now.clock.at[t];
  o.uid = mix(static_cast<word>(t) + 1, ++me.created);
  o.wrote[t] = o.touched[t] = {o.created, w};
  if (!is_plain) {
    o.order[0].uid = o.uid;
    me.now.seen.raise(o.in_view, o.order[0].place, scratch_);
    rehash(o);
  }
  return o;
}

object& memory_model::made_before(const void* address, word initial, bool is_plain) {
  object& o = add(address, initial, is_plain);
  o.uid = mix(0, reinterpret_cast<std::uintptr_t>(address));
  if (!is_plain) {
    o.order[0].uid = o.uid;
    rehash(o);
  }
  return o;
}

// ---- races

const char* memory_model::check_atomic(int t, object& o, where w) {
  if (!o.alive) return "use of an atomic after its end";
  const vector_clock& now = threads[t].now.clock;
  if (o.creator >= 0 && now.at[o.creator] < o.created)
    return "data race: use of an atomic unordered with its construction";
  o.touched[t] = {++threads[t].now.clock.at[t], w};
  return nullptr;
}

const char* memory_model::check_plain(int t, object& o, bool write, where w) {
  if (!o.alive) return "use of a plain variable after its end";
  vector_clock& now = threads[t].now.clock;
  for (int u = 0; u < max_threads; ++u) {
    if (u == t) continue;
    if (o.wrote[u].clock > now.at[u]) return write ? "data race: two writes" : "data race: read unordered with a write";
    if (write && o.touched[u].clock > now.at[u]) return "data race: write unordered with a read";
  }
  // The clock moves so that an access after a release is not mistaken for one before it.
  ++now.at[t];
  o.touched[t] = {now.at[t], w};
  if (write) o.wrote[t] = {now.at[t], w};
  return nullptr;
}

const char* memory_model::check_end(int t, object& o) {
  if (!o.alive) return nullptr;
  o.alive = false;
  for (int u = 0; u < max_threads; ++u)
    if (o.touched[u].clock > threads[t].now.clock.at[u]) return "data race: end of an object unordered with its use";
  return nullptr;
}

bool memory_model::may_be_read_from_the_future(int t, const object& o) const {
  const thread_memory& me = threads[t];
  for (int u = 0; u < max_threads; ++u)
    if (u != t && o.touched[u].clock > me.now.clock.at[u] && o.touched[u].clock <= me.cause.at[u]) return true;
  return false;
}

// ---- what an operation may choose

stamp memory_model::floor(int t, const object& o, memory_order m) const {
  const stamp mine = threads[t].now.seen[o.in_view];
  return is_sc(m) ? std::max(mine, o.sc) : mine;
}

void memory_model::readable(int t, const object& o, stamp from, host_vector<place_option>& out) const {
  out.clear();
  const thread_memory& me = threads[t];
  for (std::uint32_t i = o.order.size(); i-- > 0 && out.size() < limits.history;) {
    const stored& s = o.order[i];
    if (s.place < from) break;
    // Stores become visible in finite time: see memory_limits::dull.
    if (!out.empty() && me.dull >= limits.dull && (s.read_by >> t & 1) != 0) continue;
    out.push_back({i, true});
  }
}

void memory_model::load_options(int t, const object& o, memory_order m, host_vector<place_option>& out) const {
  readable(t, o, floor(t, o, m), out);
}

void memory_model::futex_options(int t, const object& o, host_vector<place_option>& out) const {
  readable(t, o, futex_floor(t, o), out);
}

// Directly behind this store: at the end, or in the middle without separating a read-modify-write from what it read.
bool memory_model::may_go_behind(int t, const object& o, std::uint32_t index) const {
  return index + 1 == o.order.size() || (!o.order[index + 1].is_rmw && threads[t].past < limits.past);
}

void memory_model::store_options(int t, const object& o, memory_order m, host_vector<place_option>& out) const {
  out.clear();
  const stamp from = floor(t, o, m);
  for (std::uint32_t i = o.order.size(); i-- > 0 && out.size() < limits.history;) {
    if (may_go_behind(t, o, i)) out.push_back({i, true});
    if (o.order[i].place <= from) break;
  }
}

void memory_model::modify_options(int t, const object& o, memory_order m, host_vector<place_option>& out) const {
  out.clear();
  const stamp from = floor(t, o, m);
  for (std::uint32_t i = o.order.size(); i-- > 0 && out.size() < limits.history;) {
    if (o.order[i].place < from) break;
    if (may_go_behind(t, o, i)) out.push_back({i, true});
  }
}

void memory_model::exchange_options(int t, const object& o, memory_order success, memory_order failure, word expected,
                                    host_vector<place_option>& out) const {
  out.clear();
  const thread_memory& me = threads[t];
  const stamp from_success = floor(t, o, success), from_failure = floor(t, o, failure);
  for (std::uint32_t i = o.order.size(); i-- > 0 && out.size() < limits.history;) {
    const stored& s = o.order[i];
    const bool last = i + 1 == o.order.size();
    const bool equal = s.value == expected;
    if (s.place < (equal ? from_success : from_failure)) {
      if (s.place < std::min(from_success, from_failure)) break;
      continue;
    }
    if (equal) {
      if (may_go_behind(t, o, i)) out.push_back({i, true});
    } else if (last || me.dull < limits.dull || (s.read_by >> t & 1) == 0) {
      out.push_back({i, false});  // failing is a load: it may be an old one
    }
  }
}

// ---- what an operation does

void memory_model::rehash(object& o) {
  order_sum_ -= mix(o.uid, o.order_hash);
  word h = 0;
  for (const stored& s : o.order) h = mix(h, s.uid);
  o.order_hash = h;
  order_sum_ += mix(o.uid, o.order_hash);
}

word memory_model::uid_at(const object& o, stamp place) const {
  for (std::uint32_t i = o.order.size(); i-- > 0;)
    if (o.order[i].place == place) return o.order[i].uid;
  return 0;
}

void memory_model::raise_sc(object& o, stamp place, word uid) {
  if (place <= o.sc) return;
  if (o.sc != 0) sc_sum_ -= mix(o.uid, o.sc_uid);
  o.sc = place;
  o.sc_uid = uid;
  sc_sum_ += mix(o.uid, uid);
}

void memory_model::note_read(int t, object& o, std::uint32_t index, memory_order m) {
  thread_memory& me = threads[t];
  stored& s = o.order[index];
  const std::uint8_t bit = static_cast<std::uint8_t>(1u << t);
  if ((s.read_by & bit) != 0) {
    ++me.dull;
  } else {
    me.dull = 0;
    s.read_by |= bit;
  }
  event(t, s.uid);
  me.cause.join(s.cause);
  me.now.seen.raise(o.in_view, s.place, scratch_);
  if (!s.carries) return;
  if (acquires(m)) {
    me.now.join(s.message, scratch_);
  } else {
    me.pending.join(s.message, scratch_);
    me.has_pending = true;
  }
}

word memory_model::do_load(int t, object& o, std::uint32_t index, memory_order m) {
  note_read(t, o, index, m);
  if (is_sc(m)) raise_sc(o, o.order[index].place, o.order[index].uid);
  return o.order[index].value;
}

std::uint32_t memory_model::insert(int t, object& o, std::uint32_t behind, word value, bool is_rmw) {
  thread_memory& me = threads[t];
  stored s;
  s.value = value;
  s.thread = static_cast<std::int8_t>(t);
  s.is_rmw = is_rmw;
  s.uid = mix(mix(0x5704ed, static_cast<word>(t)), ++me.stores);
  s.read_by = static_cast<std::uint8_t>(1u << t);
  me.cause.join(me.now.clock);
  s.cause = me.cause;
  const std::uint32_t at = behind + 1;
  if (at == o.order.size()) {
    s.place = o.order.back().place + gap;
    o.order.push_back(s);
    order_sum_ -= mix(o.uid, o.order_hash);
    o.order_hash = mix(o.order_hash, s.uid);
    order_sum_ += mix(o.uid, o.order_hash);
  } else {
    s.place = o.order[behind].place + (o.order[at].place - o.order[behind].place) / 2;
    if (s.place == o.order[behind].place) std::abort();  // more than 12 stores out of order in one place
    o.order.insert(o.order.begin() + at, s);
    rehash(o);
    ++me.past;
  }
  me.dull = 0;
  me.now.seen.raise(o.in_view, s.place, scratch_);
  return at;
}

void memory_model::do_store(int t, object& o, std::uint32_t behind, word value, memory_order m) {
  thread_memory& me = threads[t];
  const std::uint32_t at = insert(t, o, behind, value, false);
  stored& s = o.order[at];
  if (releases(m)) {
    s.message = me.now.copy(scratch_);
    s.carries = true;
  } else if (me.has_released) {
    s.message = me.released;  // never changed in place: a fence replaces it
    s.carries = true;
  }
  if (is_sc(m)) raise_sc(o, s.place, s.uid);
}

void memory_model::do_modify(int t, object& o, std::uint32_t index, word value, memory_order m) {
  thread_memory& me = threads[t];
  note_read(t, o, index, m);
  const std::uint32_t at = insert(t, o, index, value, true);
  stored& s = o.order[at];
  const stored& read = o.order[index];
  if (releases(m)) {
    s.message = me.now.copy(scratch_);
    s.carries = true;
  } else if (me.has_released) {
    s.message = me.released.copy(scratch_);
    s.carries = true;
  }
  if (read.carries) {  // the release sequence goes on
    if (!s.carries) s.message = knowledge{};
    s.message.join(read.message, scratch_);
    s.carries = true;
  }
  if (is_sc(m)) raise_sc(o, s.place, s.uid);
}

void memory_model::do_fence(int t, memory_order m) {
  thread_memory& me = threads[t];
  ++me.now.clock.at[t];
  if (acquires(m) && me.has_pending) {
    me.now.join(me.pending, scratch_);
    me.pending = {};
    me.has_pending = false;
  }
  if (is_sc(m)) {
    for (std::uint32_t i = 0; i < count_; ++i) {
      object& o = objects_[i];
      if (o.is_plain) continue;
      const stamp mine = me.now.seen[o.in_view];
      if (mine > o.sc)
        raise_sc(o, mine, uid_at(o, mine));
      else if (o.sc > mine)
        me.now.seen.raise(o.in_view, o.sc, scratch_);
    }
    event(t, sc_sum_);
  }
  if (releases(m)) {
    me.released = me.now.copy(scratch_);
    me.has_released = true;
  }
}

void memory_model::publish_word(int t, object& o) {
  const stamp mine = threads[t].now.seen[o.in_view];
  if (mine > o.sc) raise_sc(o, mine, uid_at(o, mine));
}

}  // namespace explore
