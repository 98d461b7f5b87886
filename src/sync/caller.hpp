// The identity of a caller, and what every call that may wait does first.
#pragma once

#include <bit>
#include <cstdint>
#include <source_location>

#include "sched/worker.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/detail/complete_until.hpp>

namespace weft::inline v1::locks {

// Identifies a task or an outside thread as the owner of a lock. Never 0.
using owner = std::uint64_t;

// Made from the address of the record and the id of the task: the next task in the same record is another owner, and so
// is a task with the same id in another runtime. The low bits of the id go where addresses have no bits.
[[nodiscard]] inline owner owner_of(const task::record& t, std::uint64_t id) noexcept {
  constexpr int address_bits = 47;
  return reinterpret_cast<std::uintptr_t>(&t) ^ std::rotl(id, address_bits);
}
[[nodiscard]] inline owner owner_of(const task::record& t) noexcept { return owner_of(t, t.id.load(base::relaxed)); }
[[nodiscard]] owner this_owner() noexcept;

using waits::undisturbed;

// Does what undisturbed() left to be done, before anything is taken: throws if cancellation is due, and yields if the
// budget is spent. A task that yielded after it took a lock would keep the lock from everybody meanwhile.
void pass_suspension_point(std::source_location where);

// Waits until the operation is completed. A cancellation point.
template <class Operation>
void complete(Operation& op, std::source_location where) {
  if (waits::fiber_wait(op, op.node(), {.interruptible = true, .where = where}) == waits::outcome::cancelled)
    waits::throw_cancelled();
}
using detail::complete_until;

// Returns the core in the memory that a public object provides for it.
//
// No constructor runs for such a core. The memory is zero before any code runs, which is the first state of the core,
// and the core's type is not known where the public object is defined. C++20 has no operation that begins the lifetime
// of an object in this way (std::start_lifetime_as of C++23 does not cover types with atomics either), so it begins
// outside of the language. The empty assembler statement makes the compiler assume that it creates a core from the
// bytes that it finds, or leaves the existing core, and that the returned pointer refers to it.
template <class Core, class Room>
[[nodiscard]] Core& core_in(Room& r) noexcept {
  static_assert(sizeof(Core) <= sizeof(Room) && alignof(Core) <= alignof(Room));
  Core* core = reinterpret_cast<Core*>(&r);
  asm("" : "+r"(core) : : "memory");
  return *core;
}

}  // namespace weft::inline v1::locks
