// What tests of dumps share: a snapshot in which certain tasks are parked, and a task of it by name.
#pragma once

#include <sstream>
#include <string>
#include <string_view>

#include <weft/observe.hpp>

#include "observe/dump.hpp"
#include "observe/snapshot.hpp"
#include "observe/text.hpp"
#include "support/usual.hpp"

namespace looks {

namespace observe = weft::observe;

// Waits until the tasks of these handles wait for something.
template <class... Handles>
void until_parked(const Handles&... tasks) {
  const auto waits = [](const weft::task_ref& t) { return t.status().state == weft::task_state::waiting; };
  support::until([&] { return (waits(tasks.ref()) && ...); });
}

// The task of that name. There has to be one.
inline const observe::task_view& named(const observe::snapshot& s, std::string_view name) {
  for (const observe::task_view& t : s.tasks)
    if (t.name == name) return t;
  ADD_FAILURE() << "there is no task " << name;
  static const observe::task_view nobody;
  return nobody;
}

inline std::string dump_of(weft::runtime& rt, weft::dump_form form = weft::dump_form::groups) {
  std::ostringstream to;
  rt.dump(to, form);
  return to.str();
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }
inline std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

}  // namespace looks
