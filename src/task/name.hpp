// A task's name. The spawner writes it, later the task itself; anybody may read it at any time.
//
// A seqlock whose words are atomics. While no write is under way, the bit `name_writing` of the version is clear.
// `name_named` tells an empty name from a set one without a look at the words, which lie on a cold line.
//
// task.M1. A reader gets a name that the task had at one moment, or learns that it was being written.
//                                                                             test api/a_name_read_from_outside_while_*
// task.M2. Nobody waits for a reader, and a reader need not wait for the writer: dumps take what they get. By code:
//     neither set_name() nor try_copy_name() has a loop that another thread could prolong.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "task/task.hpp"
#include <weft/detail/wait_kind.hpp>

namespace weft::inline v1::task {

// name_version is a count. Its lowest bits say what the words hold.
inline constexpr std::uint32_t name_writing = 1;
inline constexpr std::uint32_t name_named = 2;
inline constexpr std::uint32_t name_step = 4;

// Keeps as much as fits. Called by the spawner before anybody knows the task, or by the task itself.
inline void set_name(record& t, std::string_view name) noexcept {
  const std::size_t n = std::min(name.size(), name_capacity - 1);
  std::uint64_t words[name_words] = {};
  name.copy(reinterpret_cast<char*>(words), n);
  const std::uint32_t next = (t.name_version.load(base::relaxed) | name_writing | name_named) + name_step;
  t.name_version.store(next, base::relaxed);
  // release, for each word: whoever reads one of these words sees `next` as well. Pairs with the acquire of the words
  // in try_copy_name().
  for (std::size_t i = 0; i < name_words; ++i) t.name()[i].store(words[i], base::release);
  // release: whoever sees this version sees the words. Pairs with the first load in try_copy_name().
  t.name_version.store(next & ~(n == 0 ? name_writing | name_named : name_writing), base::release);
}

// Called when the record is free again. The words stay.
inline void clear_name(record& t) noexcept {
  const std::uint32_t version = t.name_version.load(base::relaxed);
  // relaxed: a walker that still reads the old name names a task that has just ended.
  if ((version & name_named) != 0) t.name_version.store((version & ~name_named) + name_step, base::relaxed);
}

// Fills `text`, always with a terminating zero. Returns false if the name was being written; `text` may then hold parts
// of two names. Async-signal-safe.
[[nodiscard]] inline bool try_copy_name(const record& t, char (&text)[name_capacity]) noexcept {
  std::uint64_t words[name_words] = {};
  // acquire pairs with the last store of set_name(): the words are at least as new as this version.
  const std::uint32_t before = t.name_version.load(base::acquire);
  if ((before & name_named) != 0)
    // acquire, for each word: the version read below is at least as new as every word that was read.
    for (std::size_t i = 0; i < name_words; ++i) words[i] = t.name()[i].load(base::acquire);
  std::memcpy(text, words, name_capacity);
  text[name_capacity - 1] = '\0';
  return (before & name_writing) == 0 && t.name_version.load(base::relaxed) == before;
}

// Returns the name without a copy. For the task itself, which alone could change it, or when nobody will change it.
[[nodiscard]] inline std::string_view own_name(const record& t) noexcept {
  if ((t.name_version.load(base::relaxed) & name_named) == 0) return {};
  return reinterpret_cast<const char*>(t.name());
}

// For a line of the log: `#2 "alice"`, or `#2`.
struct label {
  explicit label(const record& t) noexcept {
    char name[name_capacity];
    (void)try_copy_name(t, name);
    std::snprintf(text, sizeof text, name[0] == '\0' ? "#%llu" : "#%llu \"%s\"",
                  static_cast<unsigned long long>(t.id.load(base::relaxed)), name);
  }
  char text[64];
};

// The same for a wait: `sleep`, or with what its kind says of the object, `join of #2 "alice"`.
struct wait_text {
  explicit wait_text(const waits::subject& s) noexcept {
    const int n = std::snprintf(text, sizeof text, "%s ", s.kind->name);
    if (s.kind->describe != nullptr)
      s.kind->describe(s.object, text + n, sizeof text - static_cast<std::size_t>(n));
    else
      text[n - 1] = '\0';
  }
  char text[128];
};

}  // namespace weft::inline v1::task
