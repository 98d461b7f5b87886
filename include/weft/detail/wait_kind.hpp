// What somebody waits for, as logs and dumps know it: one static object for each kind of wait.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::inline v1::detail {
struct observer;  // src/observe/objects.cpp: reads the members of a copy of an object's bytes, for reports
}

namespace weft::inline v1::waits {

// The library's own kinds, numbered so that they can be told apart and counted without comparing text. A waitable that
// somebody else writes is `other`.
enum class kind_number : std::uint8_t {
  other,
  park_if,
  sleep,
  timer,
  select,
  join,
  scope,
  send,
  receive,
  death,
  news,
  mutex,
  shared_mutex_write,
  shared_mutex_read,
  condition_variable,
  semaphore,
  event,
  notify,
  latch,
  barrier,
  read,
  write,
  accept,
  connect,
  readable,
  writable,
  dispatcher,
  blocking,
  count
};

struct wait_kind {
  const char* name;  // "send", "join"
  kind_number number = kind_number::other;
  // Writes what can be said of the object besides its address, e.g. `of #2 "alice"`. The caller makes sure that the
  // object, or a copy of it, can be read. nullptr if there is nothing to say.
  void (*describe)(const void* object, char* text, std::size_t size) noexcept = nullptr;
};

// The kind of a wait and the object that is waited for: the channel, the lock, the task.
struct subject {
  const wait_kind* kind;
  const void* object;
};

}  // namespace weft::inline v1::waits
