// Parts of reports that every form of them uses.
#pragma once

#include <string>
#include <string_view>

#include "observe/snapshot.hpp"
#include "observe/symbols.hpp"

namespace weft::inline v1::observe {

// `1,234,567`
[[nodiscard]] std::string number_text(std::size_t n);
// `bank.cpp` of a path
[[nodiscard]] std::string_view file_text(std::string_view path);
// `transfer()` of `void transfer(account&, int)`; `main() lambda` of what is written inside of main
[[nodiscard]] std::string short_function(std::string_view signature);
// `2.1–2.3 s`
[[nodiscard]] std::string range_text(std::chrono::milliseconds least, std::chrono::milliseconds most);

// The user's frames of a stack, one for each line, innermost first: function and place in two columns. `indent` stands
// before each.
[[nodiscard]] std::string trace_text(const stack_trace& frames, std::string_view indent);
// The innermost frame of the user: `text.cpp:31 in tokenize()`. Empty if there is none.
[[nodiscard]] std::string innermost_text(const stack_trace& frames);
// Where the task is, in the same form: the place that it has noted at its wait, or its innermost frame if it runs. What
// is locked through std::lock_guard notes a line of the standard library; then the frame says more.
[[nodiscard]] std::string place_of(const snapshot& in, const task_view& t);

// What a task that has not begun will run: `main::{lambda()#1}`. Empty if it is not known.
[[nodiscard]] std::string entry_text(const task_view& t);

// What is known of an object besides its name, in brackets and with a space before: ` (0 of 4, open)`; and who holds
// it.
[[nodiscard]] std::string state_text(const snapshot& in, const object_view& o);

// `waits 0.2 s for mutex "accounts"`, `runs on worker 0 for 12 ms`, `is ready to run`, with the state of what it waits
// for.
[[nodiscard]] std::string doing_text(const snapshot& in, const task_view& t, detail_level d);

}  // namespace weft::inline v1::observe
