// The meaning of each operation: a switch point, then the memory model's options, one of which the search picks.
#include "explore/ops.hpp"

#include <cinttypes>

#include "explore/arena.hpp"
#include "explore/engine.hpp"
#include "explore/mutation.hpp"

namespace explore {

bool watching_slots = false;

namespace {

const char* text(memory_order o) {
  switch (o) {
    case std::memory_order_relaxed: return "relaxed";
    case std::memory_order_consume: return "consume";
    case std::memory_order_acquire: return "acquire";
    case std::memory_order_release: return "release";
    case std::memory_order_acq_rel: return "acq_rel";
    case std::memory_order_seq_cst: return "seq_cst";
  }
  return "?";
}

// "of T1" or "of T1, 2 newer"
struct origin {
  char text[32];
  origin(const object& o, std::uint32_t index) {
    const stored& s = o.order[index];
    const unsigned newer = static_cast<unsigned>(o.order.size() - 1 - index);
    char who[8];
    if (s.thread < 0)
      std::snprintf(who, sizeof who, "init");
    else
      std::snprintf(who, sizeof who, "T%d", s.thread);
    if (newer == 0)
      std::snprintf(text, sizeof text, "of %s", who);
    else
      std::snprintf(text, sizeof text, "of %s, %u newer", who, newer);
  }
};

}  // namespace

void born(const void* address, word initial, sort what) noexcept {
  engine& e = the_engine;
  if (object* old = e.memory.find(address); old != nullptr)
    if (const char* wrong = e.memory.check_end(e.current(), *old)) e.fail_object(wrong, *old, where::current());
  object& o = e.memory.born(e.current(), address, initial, what == sort::plain, where::current());
  o.watched = what == sort::pointer && watching_slots;
}

void died(const void* address) noexcept {
  engine& e = the_engine;
  object* o = e.memory.find(address);
  if (o == nullptr) return;
  if (const char* wrong = e.memory.check_end(e.current(), *o)) e.fail_object(wrong, *o, where::current());
}

void freed(void* block) noexcept {
  engine& e = the_engine;
  if (!exploring) return;  // a left-over of an execution that is gone
  const char* why = nullptr;
  const std::size_t bytes = arena::release(block, why);
  if (why != nullptr) e.fail("%s at %p", why, block);
  const char* from = static_cast<const char*>(block);
  for (std::uint32_t i = 0; i < e.memory.object_count(); ++i) {
    object& o = e.memory.objects()[i];
    const char* a = static_cast<const char*>(o.address);
    if (o.alive && a >= from && a < from + bytes)
      if (const char* wrong = e.memory.check_end(e.current(), o)) e.fail_object(wrong, o, where::current());
  }
}

word load(const void* address, word initial, memory_order m, where w) noexcept {
  engine& e = the_engine;
  e.point(address, m == std::memory_order_seq_cst ? engine::access::write : engine::access::load, w);
  object& o = e.atomic_object(address, initial, m == std::memory_order_seq_cst, w);
  e.memory.load_options(e.current(), o, m, e.options());
  const std::uint32_t index = e.pick_store().index;
  if (e.tracing()) e.trace("load", &o, w, "= %" PRIx64 " %s  %s", o.order[index].value, origin(o, index).text, text(m));
  return e.memory.do_load(e.current(), o, index, m);
}

void store(const void* address, word initial, word value, memory_order m, where w) noexcept {
  engine& e = the_engine;
  e.point(address, engine::access::write, w);
  object& o = e.atomic_object(address, initial, true, w);
  if (o.watched && e.memory.may_be_read_from_the_future(e.current(), o))
    e.fail_object("load buffering: a load that only relaxed communication puts before this store may return it", o, w);
  e.memory.store_options(e.current(), o, m, e.options());
  const std::uint32_t behind = e.pick_store().index;
  if (e.tracing())
    e.trace("store", &o, w, ":= %" PRIx64 "%s  %s", value, behind + 1 == o.order.size() ? "" : " (below newer ones)",
            text(m));
  e.memory.do_store(e.current(), o, behind, value, m);
}

word modify(const void* address, word initial, word (*f)(word, word), word operand, memory_order m, const char* what,
            where w) noexcept {
  engine& e = the_engine;
  e.point(address, engine::access::write, w);
  object& o = e.atomic_object(address, initial, true, w);
  e.memory.modify_options(e.current(), o, m, e.options());
  const std::uint32_t index = e.pick_store().index;
  const word old = o.order[index].value;
  const word now = f(old, operand);
  if (e.tracing()) e.trace(what, &o, w, "%" PRIx64 " -> %" PRIx64 " %s  %s", old, now, origin(o, index).text, text(m));
  e.memory.do_modify(e.current(), o, index, now, m);
  return old;
}

bool compare_exchange(const void* address, word initial, word& expected, word desired, memory_order success,
                      memory_order failure, bool weak, where w) noexcept {
  engine& e = the_engine;
  e.point(address, engine::access::write, w);
  object& o = e.atomic_object(address, initial, true, w);
  e.memory.exchange_options(e.current(), o, success, failure, expected, e.options());
  const place_option p = e.pick_store();
  const word old = o.order[p.index].value;
  const bool spurious = p.succeeds && weak && e.may_fail_weakly();
  if (p.succeeds && !spurious) {
    if (e.tracing())
      e.trace("cas", &o, w, "%" PRIx64 " -> %" PRIx64 " %s  %s", old, desired, origin(o, p.index).text, text(success));
    e.memory.do_modify(e.current(), o, p.index, desired, success);
    return true;
  }
  if (e.tracing())
    e.trace(spurious ? "cas fails weakly" : "cas fails", &o, w, "= %" PRIx64 " (not %" PRIx64 ") %s  %s", old, expected,
            origin(o, p.index).text, text(failure));
  expected = e.memory.do_load(e.current(), o, p.index, failure);
  if (spurious) e.memory.event(e.current(), 0x3eaf);
  return false;
}

void fence(memory_order m, where w) noexcept {
  engine& e = the_engine;
  e.point(nullptr, engine::access::other, w);
  if (e.tracing()) e.trace("fence", nullptr, w, "%s", text(m));
  e.memory.do_fence(e.current(), m);
}

void relax(where w) noexcept { the_engine.relax(w); }

bool futex_wait(const void* address, word initial, word expected, bool has_deadline, where w) noexcept {
  engine& e = the_engine;
  e.point(address, engine::access::other, w);
  object& o = e.atomic_object(address, initial, true, w);
  e.memory.futex_options(e.current(), o, e.options());
  const std::uint32_t index = e.pick_store().index;
  const word seen = o.order[index].value;
  if (e.tracing())
    e.trace("futex_wait", &o, w, "= %" PRIx64 " %s: %s", seen, origin(o, index).text,
            seen == expected ? "sleeps" : "goes on");
  e.memory.do_load(e.current(), o, index, std::memory_order_relaxed);
  return seen == expected && e.sleep(address, has_deadline);
}

void futex_wake(const void* address, int count, where w) noexcept {
  engine& e = the_engine;
  e.point(address, engine::access::other, w);
  object* o = e.memory.find(address);  // the word may be gone: only its address is used
  if (o != nullptr && o->alive) e.memory.publish_word(e.current(), *o);
  const int woken = e.wake(address, count);
  if (e.tracing()) e.trace("futex_wake", o, w, "woke %d", woken);
}

bool token_take(const void* address, word initial, bool has_deadline, where w) noexcept {
  engine& e = the_engine;
  const bool got_it = e.wait_for_lock(address, has_deadline, w);
  object& o = e.atomic_object(address, initial, true, w);
  if (!got_it) return false;
  const std::uint32_t last = static_cast<std::uint32_t>(o.order.size() - 1);
  if (e.tracing()) e.trace("take", &o, w, "%s", origin(o, last).text);
  e.memory.do_modify(e.current(), o, last, 1, std::memory_order_acquire);
  return true;
}

void lock_acquire(const void* address, word initial, where w) noexcept {
  (void)token_take(address, initial, false, w);
  the_engine.glue_next();
}

void lock_release(const void* address, word initial, where w) noexcept {
  engine& e = the_engine;
  e.point(address, engine::access::release, w);
  object& o = e.atomic_object(address, initial, true, w);
  const std::uint32_t last = static_cast<std::uint32_t>(o.order.size() - 1);
  if (o.order[last].value == 0) e.fail_object("release of a lock that nobody holds", o, w);
  if (e.tracing()) e.trace("unlock", &o, w, "%s", "");
  e.memory.do_modify(e.current(), o, last, 0, std::memory_order_release);
}

void plain_read(const void* address, where w) noexcept {
  engine& e = the_engine;
  object* o = e.memory.find(address);
  if (o == nullptr) o = &e.memory.made_before(address, 0, true);
  if (e.tracing()) e.trace("read", o, w, "plain");
  if (w.line() == 0) w = e.last_step();
  if (const char* wrong = e.memory.check_plain(e.current(), *o, false, w)) e.fail_object(wrong, *o, w);
}

void plain_write(const void* address, where w) noexcept {
  engine& e = the_engine;
  object* o = e.memory.find(address);
  if (o == nullptr) o = &e.memory.made_before(address, 0, true);
  if (e.tracing()) e.trace("write", o, w, "plain");
  if (w.line() == 0) w = e.last_step();
  if (const char* wrong = e.memory.check_plain(e.current(), *o, true, w)) e.fail_object(wrong, *o, w);
}

void at_point(const char* name) noexcept { the_engine.at_point(name); }

}  // namespace explore
