#include "observe/objects.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_map>

#include "chan/core.hpp"
#include "chan/news.hpp"
#include "context/region.hpp"
#include "io/fd_record.hpp"
#include "observe/eh_frame.hpp"
#include "observe/labels.hpp"
#include "observe/memory.hpp"
#include "observe/symbols.hpp"
#include "scope/core.hpp"
#include "sync/mutex.hpp"
#include "sync/semaphore.hpp"
#include "sync/shared_mutex.hpp"
#include "sync/signal.hpp"
#include <weft/barrier.hpp>
#include <weft/latch.hpp>
#include <weft/net/endpoint.hpp>

namespace weft::inline v1 {

// The only one who reads members of these objects without their locks, and only of copies.
struct detail::observer {
  using object_view = observe::object_view;

  // Says whether the object was there until now. Members are looked at only after that: the copy of something that has
  // gone is garbage.
  using question = const std::function<bool()>&;

  static std::string counted(std::size_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  }

  static void channel(object_view& o, question is_there) {
    const observe::copy_of<chan::core> c(o.address);
    if (!c || !is_there()) return;
    const observe::copy_of<chan::fast_ring> ring(c->fast_);
    if (!is_there()) return;
    // Both counts are copied without the lock, so they may be of different moments, and their difference below zero.
    const std::size_t buffered = c->buffered_ < c->taken_ ? 0 : c->buffered_ - c->taken_;
    const std::size_t size = std::min(ring ? ring->size() : buffered, c->capacity_);
    constexpr std::size_t no_limit = std::size_t{1} << 41;
    o.state = c->capacity_ == 0         ? "rendezvous"
              : c->capacity_ < no_limit ? std::to_string(size) + " of " + std::to_string(c->capacity_)
                                        : std::to_string(size) + " queued";
    o.state += c->is_abandoned() ? ", no reader" : c->is_closed() ? ", closed" : ", open";
    o.writers = c->ends_[0].load(base::relaxed);
    o.readers = c->ends_[1].load(base::relaxed);
    o.state += ", " + counted(o.writers, "writer") + ", " + counted(o.readers, "reader");
  }

  static void news(object_view& o, question is_there) {
    const observe::copy_of<chan::news> n(o.address);
    if (!n || !is_there()) return;
    o.writers = n->ends_[0];
    o.readers = n->ends_[1];
    o.state = "version " + std::to_string(n->version()) + (n->is_closed() ? ", closed" : ", open") + ", " +
              counted(o.writers, "writer") + ", " + counted(o.readers, "reader");
  }

  // The owner is stored after the bit that says "held": without an owner the mutex is just being taken, or was just
  // handed over.
  static locks::owner mutex(object_view& o, question is_there) {
    const observe::copy_of<locks::mutex_core> m(o.address);
    if (!m || !is_there()) return 0;
    o.is_held = m->is_held();
    if (!o.is_held) o.state = "free";
    return o.is_held ? m->owner_.load(base::relaxed) : 0;
  }

  static locks::owner shared_mutex(object_view& o, question is_there) {
    const observe::copy_of<locks::shared_mutex_core> m(o.address);
    if (!m || !is_there()) return 0;
    o.is_held = m->is_written();
    o.readers = static_cast<std::uint32_t>(m->word_.load(base::relaxed) / locks::shared_mutex_core::reader);
    if (!o.is_held) o.state = o.readers == 0 ? "free" : "held by " + counted(o.readers, "reader");
    return o.is_held ? m->writer_.load(base::relaxed) : 0;
  }

  static void semaphore(object_view& o, question is_there) {
    const observe::copy_of<locks::semaphore_core> s(o.address);
    if (s && is_there()) o.state = counted(s->permits(), "permit") + " left";
  }

  static void signal(object_view& o, question is_there) {
    const observe::copy_of<locks::signal_core> s(o.address);
    if (s && is_there()) o.state = s->set_ ? "set" : "not set";
  }

  // The signal of a latch lies behind its count, that of a barrier before its counts.
  static void latch(object_view& o, question is_there) {
    constexpr std::size_t before = sizeof(weft::latch::count_);
    const observe::copy_of<std::size_t> count(static_cast<const std::byte*>(o.address) - before);
    if (count && is_there()) o.state = std::to_string(*count) + " to go";
  }
  static void barrier(object_view& o, question is_there) {
    const observe::copy_of<locks::barrier_room> b(o.address);
    if (b && is_there())
      o.state = std::to_string(b->missing_) + " of " + std::to_string(b->expected_) + " have not arrived";
  }

  static void scope(object_view& o, question is_there) {
    const observe::copy_of<scope_core> s(o.address);
    if (!s || !is_there()) return;
    o.state = counted(s->live_, "task") + " in it";
    if (s->is_cancelled()) o.state += ", cancelled";
  }

  static void descriptor(object_view& o, question is_there) {
    const observe::copy_of<io::fd_record> r(o.address);
    if (!r || !is_there() || r->fd() < 0) return;
    o.name = "descriptor " + std::to_string(r->fd());
    if (r->traits().kind == io::fd_kind::socket) o.state = ends_of(r->fd());
  }

  static std::string ends_of(int fd) {
    const auto text = [&](auto get) -> std::string {
      sockaddr_storage at{};
      socklen_t size = sizeof at;
      if (get(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0) return {};
      if (at.ss_family != AF_INET && at.ss_family != AF_INET6) return {};
      try {
        return net::endpoint(reinterpret_cast<const sockaddr*>(&at), size).to_string();
      } catch (const std::exception&) {
        return {};
      }
    };
    const std::string here = text(::getsockname), there = text(::getpeername);
    return here.empty() ? std::string() : there.empty() ? "bound to " + here : here + " to " + there;
  }
};

namespace observe {
namespace {

using waits::kind_number;

bool is_descriptor(kind_number n) noexcept {
  switch (n) {
    case kind_number::read:
    case kind_number::write:
    case kind_number::accept:
    case kind_number::connect:
    case kind_number::readable:
    case kind_number::writable: return true;
    default: return false;
  }
}

// Whether a certain task has to do something before a wait of this kind can end, and the object says which.
bool has_holder(kind_number n) noexcept {
  return n == kind_number::join || n == kind_number::mutex || n == kind_number::shared_mutex_read ||
         n == kind_number::shared_mutex_write;
}

// Returns the owner of a lock, 0 if there is none.
locks::owner read_state(object_view& o, const std::function<bool()>& is_there) {
  using detail::observer;
  switch (o.number) {
    case kind_number::send:
    case kind_number::receive: observer::channel(o, is_there); return 0;
    case kind_number::news: observer::news(o, is_there); return 0;
    case kind_number::mutex: return observer::mutex(o, is_there);
    case kind_number::shared_mutex_read:
    case kind_number::shared_mutex_write: return observer::shared_mutex(o, is_there);
    case kind_number::semaphore: observer::semaphore(o, is_there); return 0;
    case kind_number::event:
    case kind_number::notify: observer::signal(o, is_there); return 0;
    case kind_number::latch: observer::latch(o, is_there); return 0;
    case kind_number::barrier: observer::barrier(o, is_there); return 0;
    case kind_number::scope: observer::scope(o, is_there); return 0;
    default:
      if (is_descriptor(o.number)) observer::descriptor(o, is_there);
      return 0;
  }
}

// An object was there while it was read if a task that waits for it has waited all the time.
bool was_there(const snapshot& s, const object_view& o) noexcept {
  base::fence_seq_cst();
  for (const index i : o.waiters) {
    const task_view& t = s.tasks[i];
    const std::uint64_t now = t.record->word.load();
    if (task::state_word::phase_of(now) == task::state_word::phase_of(t.word) &&
        task::state_word::ticket_of(now) == task::state_word::ticket_of(t.word))
      return true;
  }
  return false;
}

std::string place_of(const snapshot& s, const object_view& o) {
  if (is_descriptor(o.number) || o.number == kind_number::join) return {};
  const context::region::found on = context::region::find(reinterpret_cast<std::uintptr_t>(o.address));
  if (on.which != nullptr && !on.in_guard) {
    const auto owner = s.by_memory.find(on.which);
    return "on the stack of " +
           (owner == s.by_memory.end() ? std::string("a task that is not listed") : label_of(s.tasks[owner->second]));
  }
  std::string symbol = symbol_at(o.address);
  return symbol.empty() ? symbol : "in " + symbol;
}

}  // namespace

sort_of_object sort_of(kind_number n) noexcept {
  switch (n) {
    case kind_number::send:
    case kind_number::receive:
    case kind_number::death: return {"channel", 'C'};
    case kind_number::news: return {"news", 'W'};
    case kind_number::mutex: return {"mutex", 'M'};
    case kind_number::shared_mutex_write:
    case kind_number::shared_mutex_read: return {"shared_mutex", 'R'};
    case kind_number::condition_variable: return {"condition_variable", 'V'};
    case kind_number::semaphore: return {"semaphore", 'S'};
    case kind_number::event: return {"event", 'E'};
    case kind_number::notify: return {"notify", 'N'};
    case kind_number::latch: return {"latch", 'L'};
    case kind_number::barrier: return {"barrier", 'B'};
    case kind_number::scope: return {"scope", 'P'};
    case kind_number::join: return {"the end of", 0};
    case kind_number::read:
    case kind_number::write:
    case kind_number::accept:
    case kind_number::connect:
    case kind_number::readable:
    case kind_number::writable: return {"descriptor", 0};
    default: return {"", 0};
  }
}

const char* verb_of(const waits::wait_kind& kind) noexcept {
  switch (kind.number) {
    case kind_number::send: return "to send to";
    case kind_number::receive: return "to receive from";
    case kind_number::death: return "for the death of the other side of";
    case kind_number::shared_mutex_write: return "to write under";
    case kind_number::shared_mutex_read: return "to read under";
    case kind_number::scope: return "for the end of";
    case kind_number::read: return "to read from";
    case kind_number::write: return "to write to";
    case kind_number::accept: return "to accept on";
    case kind_number::connect: return "to connect";
    case kind_number::readable: return "for something to read from";
    case kind_number::writable: return "for room to write to";
    default: return "for";
  }
}

scope_view look_at_scope(const task_view& child) {
  const copy_of<detail::scope_core> s(child.scope);
  // No child outlives its scope (scope.G1).
  return s && is_still_there(child) ? scope_view{s->body(), s->where(), s->is_cancelled()} : scope_view{};
}

std::string symbol_at(const void* address) {
  if (object_at(reinterpret_cast<std::uintptr_t>(address)).link_map == nullptr) return {};  // on the heap, for example
  return symbols_of(reinterpret_cast<std::uintptr_t>(address), true).back().function;
}

void read_objects(snapshot& s, bool with_names) {
  std::unordered_map<locks::owner, index> owners;
  owners.reserve(s.tasks.size());
  // With the ids that the snapshot has: a record may belong to another task by now.
  for (std::size_t i = 0; i < s.tasks.size(); ++i)
    owners.emplace(locks::owner_of(*s.tasks[i].record, s.tasks[i].id), static_cast<index>(i));

  std::array<std::uint32_t, 128> last{};
  for (object_view& o : s.objects) {
    if (!with_names && !has_holder(o.number)) continue;
    const locks::owner holder = read_state(o, [&] { return was_there(s, o); });
    if (o.number == kind_number::join) {
      o.holder = s.find(static_cast<const task::record*>(o.address));
      o.is_held = true;
      if (!with_names) continue;
      o.name = "the end of " + (o.holder == none ? "a task of another runtime" : label_of(s.tasks[o.holder]));
      continue;
    }
    if (holder != 0) {
      const auto at = owners.find(holder);
      o.holder = at == owners.end() ? none : at->second;
      o.held_outside = holder >> 32 == 0;  // threads have small numbers (sync/caller.cpp)
    }
    if (!with_names) continue;
    o.place = place_of(s, o);
    if (!o.name.empty()) continue;
    const sort_of_object sort = sort_of(o.number);
    if (const std::string given = label_of_object(o.address); !given.empty())
      o.name = std::string(sort.noun) + (sort.noun[0] == '\0' ? "\"" : " \"") + given + "\"";
    else if (sort.letter != 0)
      o.name =
          std::string(sort.noun) + " " + sort.letter + std::to_string(++last[static_cast<unsigned char>(sort.letter)]);
    else
      o.name = sort.noun;
  }
}

}  // namespace observe
}  // namespace weft::inline v1
