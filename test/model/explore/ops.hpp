// What the exploring twins call: every operation of the code under test ends here. engine.cpp gives them their meaning.
#pragma once

#include <atomic>  // std::memory_order only
#include <cstddef>
#include <cstdint>
#include <source_location>

namespace explore {

using word = std::uint64_t;  // the bits of a value; values are at most this wide
using std::memory_order;
using where = std::source_location;

// A virtual thread is running, so operations are explored. Otherwise the twins are ordinary variables, which is what
// objects at namespace scope and set-up on the controlling thread need.
extern bool exploring;

// An object comes to life, or ends, at this address. Its memory is written by that, as far as races are concerned.
enum class sort : std::uint8_t { value, pointer, plain };
void born(const void* object, word initial, sort) noexcept;
void died(const void* object) noexcept;

word load(const void* object, word initial, memory_order, where) noexcept;
void store(const void* object, word initial, word value, memory_order, where) noexcept;
// f(old, operand) is the new value; returns the old one.
word modify(const void* object, word initial, word (*f)(word, word), word operand, memory_order, const char* what,
            where) noexcept;
bool compare_exchange(const void* object, word initial, word& expected, word desired, memory_order success,
                      memory_order failure, bool weak, where) noexcept;
void fence(memory_order, where) noexcept;
void relax(where) noexcept;

// True: the deadline ended it.
bool futex_wait(const void* object, word initial, word expected, bool has_deadline, where) noexcept;
void futex_wake(const void* object, int count, where) noexcept;

// The abstract lock (abstract/base/lock.hpp) over an atomic word: one step each; who waits cannot run while it is held.
void lock_acquire(const void* object, word initial, where) noexcept;
void lock_release(const void* object, word initial, where) noexcept;

// The abstract driver: 0 is a token, which anybody may leave at any time. False: the deadline ended the wait.
bool token_take(const void* object, word initial, bool has_deadline, where) noexcept;

void plain_read(const void* object, where) noexcept;
void plain_write(const void* object, where) noexcept;

// The mutation point that the next operation of this thread carries in the trace.
void at_point(const char* name) noexcept;

}  // namespace explore
