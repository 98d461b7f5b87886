#include "observe/text.hpp"

#include <algorithm>
#include <cstdio>

#include "observe/objects.hpp"

namespace weft::inline v1::observe {
namespace {

std::string formatted(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string seconds_text(std::chrono::milliseconds age) {
  const double s = static_cast<double>(age.count()) / 1000;
  return formatted(s < 10 ? "%.1f" : "%.0f", s);
}

const char* state_in_kernel(char letter) noexcept {
  switch (letter) {
    case 'R': return "runs";
    case 'S': return "sleeps in the kernel";
    case 'D': return "waits for a disk";
    case 'T':
    case 't': return "is stopped";
    default: return "is gone";
  }
}

std::string wait_in_words(const snapshot& in, const wait_view& w, detail_level d) {
  std::string text = verb_of(*w.kind);
  if (w.about == none) {
    // What has no object, or none that was looked at, is called by the name of its kind.
    if (w.kind->number == waits::kind_number::sleep) return "for the end of its sleep";
    if (w.kind->number == waits::kind_number::timer) return "for a timer";
    return "for " + std::string(w.kind->name);
  }
  const object_view& o = in.objects[w.about];
  text += " " + (o.name.empty() ? std::string(w.kind->name) : o.name);
  if (d == detail_level::states) text += state_text(in, o);
  return text;
}

struct line {
  std::string function;
  std::string place;
  bool is_of_std;
};

bool is_of_std(std::string_view file) noexcept { return file.find("/c++/") != std::string_view::npos; }

// The frames that the user wrote. A std::lock_guard between the user and the wait is left away as well: its line says
// nothing.
std::span<const symbol> of_the_user(std::span<const symbol> all) {
  // A thread that asks for a dump interrupts itself in a system call of Weft.
  if (all.size() > 1 && all[0].function == "syscall" && is_weft_internal(all[1])) all = all.subspan(1);
  const std::span<const symbol> visible = without_weft(all);
  const bool waits_inside = !visible.empty() && visible.data() != all.data();
  const auto first = std::find_if(visible.begin(), visible.end(), [](const symbol& s) { return !is_of_std(s.file); });
  return waits_inside && first != visible.end() ? visible.subspan(static_cast<std::size_t>(first - visible.begin()))
                                                : visible;
}

std::vector<line> lines_of(const stack_trace& frames) {
  std::vector<line> lines;
  const std::vector<symbol> all = symbols_of(frames);
  for (const symbol& s : of_the_user(all)) {
    std::string place(file_text(s.file));
    if (s.line != 0) place += ":" + std::to_string(s.line);
    lines.push_back({s.function, std::move(place), is_of_std(s.file)});
  }
  return lines;
}

}  // namespace

std::string number_text(std::size_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string_view file_text(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Compilers write `int main()::<lambda()>` or `main()::(anonymous class)::operator()() const`.
std::string short_function(std::string_view full) {
  std::string signature(full);
  constexpr std::string_view unnamed = "(anonymous namespace)::";
  for (std::size_t at = signature.find(unnamed); at != std::string::npos; at = signature.find(unnamed))
    signature.erase(at, unnamed.size());
  const bool is_lambda =
      signature.find("lambda") != std::string::npos || signature.find("(anonymous class)") != std::string::npos;
  std::size_t end = 0, begin = 0;
  for (int depth = 0; end < signature.size(); ++end) {
    const char c = signature[end];
    const bool is_operator = end >= 8 && signature.compare(end - 8, 8, "operator") == 0;
    if (c == '<' && !is_operator) ++depth;
    if (c == '>' && depth > 0) --depth;
    if (depth != 0) continue;
    if (c == ' ') begin = end + 1;
    if (c == '(' && !is_operator && signature.compare(end, 11, "(anonymous ") != 0) break;
  }
  std::string name = signature.substr(begin, end - begin);
  while (!name.empty() && (name.front() == '*' || name.front() == '&')) name.erase(0, 1);
  return name.empty() ? name : name + (is_lambda ? "() lambda" : "()");
}

std::string duration_text(std::chrono::milliseconds age) {
  using namespace std::chrono_literals;
  if (age < 100ms) return std::to_string(age.count()) + " ms";
  if (age < 120s) return seconds_text(age) + " s";
  if (age < 120min) return std::to_string(age / 1min) + " min";
  return std::to_string(age / 1h) + " h";
}

std::string range_text(std::chrono::milliseconds least, std::chrono::milliseconds most) {
  const std::string from = duration_text(least), to = duration_text(most);
  if (from == to) return to;
  const bool same_unit = from.substr(from.find(' ')) == to.substr(to.find(' '));
  return (same_unit ? from.substr(0, from.find(' ')) : from) + "–" + to;
}

std::string label_of(const task_view& t) {
  return "#" + std::to_string(t.id) + (t.name.empty() ? std::string() : " \"" + t.name + "\"");
}

std::string place_text(const std::source_location& where) {
  if (where.line() == 0) return {};
  const std::string function = short_function(where.function_name());
  return std::string(file_text(where.file_name())) + ":" + std::to_string(where.line()) +
         (function.empty() ? function : " in " + function);
}

std::string state_text(const snapshot& in, const object_view& o) {
  std::string text = o.state;
  if (o.holder != none && o.number != waits::kind_number::join)
    text += (text.empty() ? "held by " : ", held by ") + label_of(in.tasks[o.holder]);
  else if (o.held_outside)
    text += text.empty() ? "held by a thread that is no task" : ", held by a thread that is no task";
  if (!o.place.empty()) text += (text.empty() ? "" : ", ") + o.place;
  return text.empty() ? text : " (" + text + ")";
}

std::string wait_text(const snapshot& in, const task_view& t, detail_level d) {
  if (!t.is_exact) return "(it moves)";
  if (t.kind == nullptr) return "for something that it did not note";
  if (t.kind->number != waits::kind_number::select)
    return t.waits.empty() ? "for " + std::string(t.kind->name) : wait_in_words(in, t.waits.front(), d);
  std::string text = "in a select";
  for (std::size_t i = 0; i < t.waits.size(); ++i) text += (i == 0 ? " " : " or ") + wait_in_words(in, t.waits[i], d);
  return text;
}

std::string doing_text(const snapshot& in, const task_view& t, detail_level d) {
  switch (t.state) {
    case task_state::waiting: return "waits " + duration_text(t.age) + " " + wait_text(in, t, d);
    case task_state::ready: return t.is_fresh ? "has not begun" : "is ready to run";
    case task_state::running:
    case task_state::blocking: break;
    case task_state::ended: return "has ended";
  }
  std::string text = t.state == task_state::blocking ? "is in a blocking call" : "runs";
  if (t.on_worker == none) return text;
  const worker_view& w = in.workers[t.on_worker];
  text += " on worker " + std::to_string(w.id) + " for " + duration_text(w.age);
  if (w.sleeps_in_kernel() || t.trace == none)
    text += std::string("; its thread ") + std::to_string(w.thread_id) + " " + state_in_kernel(w.kernel_state);
  return text;
}

// `weft::v1::detail::body<main::{lambda()#1}>::run_body(void*)` has the type of the user's callable in the outer
// brackets.
std::string entry_text(const task_view& t) {
  if (!t.is_fresh || !t.is_exact || t.entry == 0) return {};
  const std::string function = symbols_of(t.entry, true).back().function;
  const std::size_t begin = function.find("body<"), end = function.rfind(">::run");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return function.substr(begin + 5, end - begin - 5);
}

std::string trace_text(const stack_trace& frames, std::string_view indent) {
  const std::vector<line> lines = lines_of(frames);
  constexpr std::size_t widest = 60;
  std::size_t width = 0;
  for (const line& l : lines) width = std::max(width, std::min(l.function.size(), widest));
  std::string text;
  for (const line& l : lines) {
    text.append(indent).append(l.function);
    if (!l.place.empty())
      text.append(l.function.size() < width ? width - l.function.size() : 0, ' ').append("  ").append(l.place);
    text += '\n';
  }
  return text;
}

// A function of the standard library says less than the one that called it.
std::string innermost_text(const stack_trace& frames) {
  const std::vector<line> lines = lines_of(frames);
  if (lines.empty()) return {};
  const auto own = std::find_if(lines.begin(), lines.end(), [](const line& l) { return !l.is_of_std; });
  const line& shown = own == lines.end() ? lines.front() : *own;
  const std::string function = short_function(shown.function);
  return shown.place.empty() ? function : shown.place + " in " + function;
}

std::string place_of(const snapshot& in, const task_view& t) {
  const bool has_noted = t.state == task_state::waiting || t.state == task_state::blocking;
  std::string innermost = has_noted && !is_of_std(t.where.file_name()) ? "" : innermost_text(in.frames_of(t));
  return innermost.empty() && has_noted ? place_text(t.where) : innermost;
}

std::string text_of(const snapshot& in, const task_view& t) {
  std::string text = label_of(t) + "  " + doing_text(in, t, detail_level::names);
  const std::string place = place_of(in, t);
  return place.empty() ? text : text + "   " + place;
}

}  // namespace weft::inline v1::observe
