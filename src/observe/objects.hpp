// The objects that tasks wait for: what they are called, what state they are in, who holds them.
#pragma once

#include <string>
#include <string_view>

#include "observe/snapshot.hpp"

namespace weft::inline v1::observe {

// Fills in what can be read of the objects of a snapshot, and names them: by weft::label, or with a number for each
// sort in the order of appearance. What is gone meanwhile stays without a state. Without names, only the holders of locks
// and the tasks that are joined are filled in.
void read_objects(snapshot& s, bool with_names);

// What tasks wait for, as a noun and the letter of its numbers: {"channel", 'C'}. An object without a number (a task, a
// descriptor) has the letter 0.
struct sort_of_object {
  const char* noun;
  char letter;
};
[[nodiscard]] sort_of_object sort_of(waits::kind_number n) noexcept;

// How a sentence continues after "waits": `for`, `to receive from`.
[[nodiscard]] const char* verb_of(const waits::wait_kind& kind) noexcept;

// The scope whose child a task is. Nothing is known of it if the task has ended meanwhile.
struct scope_view {
  const task::record* body = nullptr;  // the task that runs the body; nullptr if the scope is a group or is gone
  std::source_location where = {};
  bool is_cancelled = false;
};
[[nodiscard]] scope_view look_at_scope(const task_view& child);

// The symbol of a global variable or function at this address; empty if there is none.
[[nodiscard]] std::string symbol_at(const void* address);

}  // namespace weft::inline v1::observe
