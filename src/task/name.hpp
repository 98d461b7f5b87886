// A task's name: written by the spawner, then by the task itself; read by anybody at any time.
//
// A seqlock whose words are atomics: even versions are at rest, `named` tells an empty box from a full one without touching
// the words, which lie on a cold line.
//
// M1. A reader gets a name that the task had at one moment, or learns that it was being written.   test api/names_*
// M2. Nobody waits for a reader, and a reader need not wait for the writer: dumps take what they get.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "task/task.hpp"

namespace weft::inline v1::task {

// name_version: a count, and in its lowest bits what the words hold.
inline constexpr std::uint32_t name_writing = 1;
inline constexpr std::uint32_t name_named = 2;
inline constexpr std::uint32_t name_step = 4;

// Keeps what fits. The spawner, before anybody knows the task, or the task itself.
inline void set_name(record& t, std::string_view name) noexcept {
  const std::size_t n = std::min(name.size(), name_capacity - 1);
  std::uint64_t words[name_words] = {};
  name.copy(reinterpret_cast<char*>(words), n);
  const std::uint32_t next = (t.name_version.load(base::relaxed) | name_writing | name_named) + name_step;
  t.name_version.store(next, base::relaxed);
  // release, each: who reads one of these words sees `next` as well. Pairs with the acquire of the words in try_copy_name().
  for (std::size_t i = 0; i < name_words; ++i) t.name[i].store(words[i], base::release);
  // release: who sees the end sees the words. Pairs with the first load in try_copy_name().
  t.name_version.store(next & ~(n == 0 ? name_writing | name_named : name_writing), base::release);
}

// The record is free again. The words stay.
inline void clear_name(record& t) noexcept {
  const std::uint32_t version = t.name_version.load(base::relaxed);
  // relaxed: a walker that still reads the old name names a task that has just ended.
  if ((version & name_named) != 0) t.name_version.store((version & ~name_named) + name_step, base::relaxed);
}

// Fills `text`, always with an end. False: it was being written; `text` may hold parts of two names. Async-signal-safe.
[[nodiscard]] inline bool try_copy_name(const record& t, char (&text)[name_capacity]) noexcept {
  std::uint64_t words[name_words] = {};
  // acquire pairs with the last store of set_name(): the words are at least as new as this version.
  const std::uint32_t before = t.name_version.load(base::acquire);
  if ((before & name_named) != 0)
    // acquire, each: the version below is at least as new as every word read.
    for (std::size_t i = 0; i < name_words; ++i) words[i] = t.name[i].load(base::acquire);
  std::memcpy(text, words, name_capacity);
  text[name_capacity - 1] = '\0';
  return (before & name_writing) == 0 && t.name_version.load(base::relaxed) == before;
}

// Without a copy: for the one who could change it, or when nobody will.
[[nodiscard]] inline std::string_view own_name(const record& t) noexcept {
  if ((t.name_version.load(base::relaxed) & name_named) == 0) return {};
  return reinterpret_cast<const char*>(t.name);
}

// For a line of a log: `#2 "alice"`, or `#2`.
struct label {
  explicit label(const record& t) noexcept {
    char name[name_capacity];
    (void)try_copy_name(t, name);
    std::snprintf(text, sizeof text, name[0] == '\0' ? "#%llu" : "#%llu \"%s\"", static_cast<unsigned long long>(t.id),
                  name);
  }
  char text[64];
};

}  // namespace weft::inline v1::task
