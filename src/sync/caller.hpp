// Who calls, and what every call that may wait does first.
#pragma once

#include <bit>
#include <cstdint>
#include <source_location>

#include "sched/worker.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/detail/complete_until.hpp>

namespace weft::inline v1::locks {

// Names a task or an outside thread, as the owner of a lock; never 0.
using owner = std::uint64_t;

// By its record and its id: the next task that has the record is another owner, and so is one with the same id of another runtime
// that lives. The low bits of the id go where addresses have none.
[[nodiscard]] inline owner owner_of(const task::record& t) noexcept {
  constexpr int address_bits = 47;
  return reinterpret_cast<std::uintptr_t>(&t) ^ std::rotl(t.id, address_bits);
}
[[nodiscard]] owner this_owner() noexcept;

using waits::undisturbed;

// What undisturbed() left to be done before anything is taken: throws if cancellation is due, yields if the budget is spent. A
// task that yielded after it took a lock would keep the lock from everybody meanwhile.
void pass_suspension_point(std::source_location where);

// Until the operation is completed. A cancellation point.
template <class Operation>
void complete(Operation& op, std::source_location where) {
  if (waits::fiber_wait(op, op.node(), {.interruptible = true, .where = where}) == waits::outcome::cancelled)
    waits::throw_cancelled();
}
using detail::complete_until;

// A core in the room that a public object has for it.
//
// No constructor of the core runs for it: the room is zero before any code runs, which is the core's first state, and where the
// public object is defined its type is not known. C++20 has no operation that begins a life so (std::start_lifetime_as of C++23
// is not for types with atomics either). So it begins outside of the language: of the assembler statement, which is empty, the
// compiler has to assume that it makes a core of the bytes that it finds, or leaves the one that is there, and that what it
// returns refers to it.
template <class Core, class Room>
[[nodiscard]] Core& core_in(Room& r) noexcept {
  static_assert(sizeof(Core) <= sizeof(Room) && alignof(Core) <= alignof(Room));
  Core* core = reinterpret_cast<Core*>(&r);
  asm("" : "+r"(core) : : "memory");
  return *core;
}

}  // namespace weft::inline v1::locks
