#include "observe/dump.hpp"

#include <algorithm>
#include <map>
#include <ostream>
#include <tuple>

#include "observe/objects.hpp"
#include "observe/text.hpp"
#include "sched/runtime_access.hpp"

namespace weft::inline v1 {

void runtime::dump(std::ostream& to) { dump(to, dump_form::groups); }
void runtime::dump(std::ostream& to, dump_form form) { to << observe::dump_text(*core_, form) << std::flush; }

namespace observe {
namespace {

std::string counted(std::size_t n, const char* what) { return number_text(n) + " " + what + (n == 1 ? "" : "s"); }

std::string head_text(const snapshot& s) {
  std::string text = "weft dump: " + counted(s.tasks.size(), "task") + " (" + number_text(s.running) + " running, " +
                     number_text(s.runnable) + " runnable, " + number_text(s.parked) + " parked), " +
                     counted(s.workers.size(), "worker") + ", taken in " +
                     duration_text(std::chrono::duration_cast<std::chrono::milliseconds>(s.took)) + "\n";
  for (const worker_view& w : s.workers) {
    text += "worker " + std::to_string(w.id) + "  ";
    switch (w.what) {
      case worker_view::doing::runs:
        if (w.task == none) {
          text += "runs a task that has begun meanwhile";
        } else {
          const task_view& t = s.tasks[w.task];
          text += "runs " + label_of(t) + " for " + duration_text(w.age);
          if (const std::string at = innermost_text(s.frames_of(t)); t.on_worker != none && !at.empty())
            text += ": " + at;
        }
        break;
      case worker_view::doing::searches: text += "looks for work"; break;
      case worker_view::doing::sleeps: text += "asleep"; break;
      case worker_view::doing::leaves: text += "leaves"; break;
      case worker_view::doing::gone: text += "has ended"; break;
    }
    text += '\n';
  }
  return text;
}

// Where a task is: its stack, or at least the place that it has noted.
std::string where_text(const snapshot& s, const task_view& t) {
  constexpr const char* indent = "     ";
  if (std::string trace = trace_text(s.frames_of(t), indent); !trace.empty()) return trace;
  if (const std::string entry = entry_text(t); !entry.empty()) return indent + entry + "\n";
  if (t.state != task_state::waiting && t.state != task_state::blocking) return {};
  const std::string place = place_text(t.where);
  return place.empty() ? place : indent + place + "\n";
}

// Tasks that do the same in the same place.
struct group {
  std::vector<index> members;
  std::chrono::milliseconds least{0}, most{0};
};

// Stacks that differ only in frames of Weft are one for the reader: the same number for those with the same text.
std::vector<index> equal_traces(const snapshot& s) {
  std::map<std::string, index> texts;
  std::vector<index> same;
  for (const stack_trace& t : s.traces)
    same.push_back(texts.try_emplace(trace_text(t, ""), static_cast<index>(texts.size())).first->second);
  return same;
}

std::vector<group> groups_of(const snapshot& s) {
  const std::vector<index> same = equal_traces(s);
  // Where there is no stack, the place of the wait stands for it.
  using key = std::tuple<task_state, bool, bool, index, index, std::uintptr_t, const void*, std::vector<const void*>,
                         const char*, std::uint_least32_t>;
  std::map<key, group> found;
  for (std::size_t i = 0; i < s.tasks.size(); ++i) {
    const task_view& t = s.tasks[i];
    std::vector<const void*> objects;
    for (const wait_view& w : t.waits) objects.push_back(w.object);
    const bool by_place = t.trace == none && t.state == task_state::waiting;
    group& g = found[{t.state, t.is_fresh, t.is_exact, t.trace == none ? none : same[t.trace], t.on_worker, t.entry,
                      t.state == task_state::waiting ? t.kind : nullptr, std::move(objects),
                      by_place ? t.where.file_name() : nullptr, by_place ? t.where.line() : 0}];
    g.least = g.members.empty() ? t.age : std::min(g.least, t.age);
    g.most = std::max(g.most, t.age);
    g.members.push_back(static_cast<index>(i));
  }
  std::vector<group> all;
  for (auto& [k, g] : found) all.push_back(std::move(g));
  std::sort(all.begin(), all.end(), [](const group& a, const group& b) {
    return a.members.size() != b.members.size() ? a.members.size() > b.members.size() : a.members[0] < b.members[0];
  });
  return all;
}

std::string group_head(const snapshot& s, const group& g) {
  const task_view& first = s.tasks[g.members.front()];
  if (g.members.size() == 1) return "-- " + label_of(first) + " " + doing_text(s, first, detail_level::states) + "\n";
  std::string text = "-- " + counted(g.members.size(), "task");
  if (first.state == task_state::waiting)
    text += ", " + range_text(g.least, g.most) + ": wait " + wait_text(s, first, detail_level::states);
  else if (first.state == task_state::ready)
    text += first.is_fresh ? " that have not begun" : " that are ready to run";
  else
    text += ": " + doing_text(s, first, detail_level::states);
  constexpr std::size_t most_named = 4;
  for (std::size_t i = 0; i < std::min(g.members.size(), most_named); ++i)
    text += (i == 0 ? "  " : ", ") + label_of(s.tasks[g.members[i]]);
  return text + (g.members.size() > most_named ? " …\n" : "\n");
}

// By scope: a task, and below it the scopes that it has open, with their children.
class tree {
 public:
  explicit tree(const snapshot& s) : in_(s) {
    for (std::size_t i = 0; i < s.tasks.size(); ++i) {
      const task_view& t = s.tasks[i];
      if (t.scope != nullptr) children_[t.scope].push_back(static_cast<index>(i));
    }
    for (const auto& [scope, children] : children_) {
      const scope_view v = look_at_scope(s.tasks[children.front()]);
      seen_.emplace(scope, v);
      const index body = v.body == nullptr ? none : s.find(v.body);
      (body == none ? of_nobody_ : open_[body]).push_back(scope);
    }
  }
  std::string text() {
    for (std::size_t i = 0; i < in_.tasks.size(); ++i)
      if (in_.tasks[i].scope == nullptr) add(static_cast<index>(i), 0);
    for (const void* scope : of_nobody_) add_scope(scope, 0);
    return std::move(text_);
  }

 private:
  void add(index i, std::size_t depth) {
    text_ += std::string(2 * depth, ' ') + text_of(in_, in_.tasks[i]) + "\n";
    if (depth < deepest)
      for (const void* scope : open_[i]) add_scope(scope, depth + 1);
  }
  void add_scope(const void* scope, std::size_t depth) {
    const scope_view& v = seen_[scope];
    const std::string place = place_text(v.where);
    text_ += std::string(2 * depth, ' ') + (v.body != nullptr ? "scope" : "group") +
             (place.empty() ? place : " of " + place) + (v.is_cancelled ? ", cancelled" : "") + "\n";
    for (const index child : children_[scope]) add(child, depth + 1);
  }

  static constexpr std::size_t deepest = 100;
  const snapshot& in_;
  std::map<const void*, std::vector<index>> children_;
  std::map<const void*, scope_view> seen_;
  std::map<index, std::vector<const void*>> open_;
  std::vector<const void*> of_nobody_;  // groups, and scopes whose body is not known
  std::string text_;
};

}  // namespace

std::string groups_text(const snapshot& s) {
  std::string text = head_text(s);
  for (const group& g : groups_of(s)) text += group_head(s, g) + where_text(s, s.tasks[g.members.front()]);
  return text;
}

std::string tasks_text(const snapshot& s) {
  std::string text = head_text(s);
  for (const task_view& t : s.tasks)
    text += "-- " + label_of(t) + " " + doing_text(s, t, detail_level::states) + "\n" + where_text(s, t);
  return text;
}

std::string tree_text(const snapshot& s) { return head_text(s) + tree(s).text(); }

std::string dump_text(sched::scheduler& of, dump_form form) {
  const snapshot s = take_snapshot(of);
  switch (form) {
    case dump_form::tasks: return tasks_text(s);
    case dump_form::tree: return tree_text(s);
    case dump_form::json: return json_text(s);
    case dump_form::groups: break;
  }
  return groups_text(s);
}

}  // namespace observe
}  // namespace weft::inline v1
