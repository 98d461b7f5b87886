#include "observe/deadlock_report.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include "observe/deadlock_hints.hpp"
#include "observe/snapshot.hpp"
#include "observe/text.hpp"
#include "observe/wait_graph.hpp"
#include "sched/scheduler.hpp"

namespace weft::inline v1::observe {
namespace {

using waits::kind_number;
using cycle = std::vector<std::size_t>;

constexpr std::size_t most_tasks = 20;  // that are listed one by one
constexpr std::size_t most_stacks = 8;

std::string how_many(std::size_t n, const char* what) { return number_text(n) + " " + what + (n == 1 ? "" : "s"); }

class report {
 public:
  // `is_whole` says that all tasks are stuck, and not only those on cycles.
  report(const std::vector<snapshot>& all, bool is_whole)
      : several_(all.size() > 1),
        all_stacks_(is_whole),
        graph_(all),
        cycles_(graph_.cycles()) {
    find_places();
    if (is_whole) channels_ = look_at_channels(graph_);
  }

  [[nodiscard]] std::size_t on_cycles() const { return those(place::on_cycle).size(); }

  // --- parts of the text, in their order ---
  [[nodiscard]] std::string cycles_text() const {
    std::string text;
    for (const cycle& c : cycles_) {
      text += c.size() == 1 ? std::string("waits for itself:\n") : "cycle of " + std::to_string(c.size()) + ":\n";
      for (std::size_t k = 0; k < c.size(); ++k) {
        const std::size_t next = c[(k + 1) % c.size()];
        text += line_of(c[k], detail_level::names) + link_text(c[k], next, k + 1 == c.size());
      }
    }
    return text;
  }
  // Those that wait for a task on a cycle, whoever is between them.
  [[nodiscard]] std::string behind_text() const { return list_text("behind it:\n", those(place::behind)); }
  [[nodiscard]] std::string others_text() const {
    return list_text(cycles_.empty() ? "parked:\n" : "also parked:\n", those(place::elsewhere));
  }
  [[nodiscard]] std::string stacks_text() const {
    std::map<std::pair<std::size_t, index>, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i)
      if (const index trace = graph_.nodes()[i].task->trace;
          trace != none && (all_stacks_ || where_is_[i] == place::on_cycle))
        groups[{graph_.nodes()[i].runtime, trace}].push_back(i);
    std::vector<const std::vector<std::size_t>*> sorted;
    for (const auto& [stack, members] : groups) sorted.push_back(&members);
    // Those of a cycle first, then in the order of the tasks.
    std::sort(sorted.begin(), sorted.end(), [&](const auto* a, const auto* b) {
      return std::pair(!is_on_cycle(a->front()), a->front()) < std::pair(!is_on_cycle(b->front()), b->front());
    });
    std::string text;
    std::size_t told = 0;
    for (const auto* members : sorted) {
      const wait_graph::node& first = graph_.nodes()[members->front()];
      const std::string trace = trace_text(first.in->frames_of(*first.task), "     ");
      if (trace.empty()) continue;
      if (told++ == most_stacks) return text + "  and " + how_many(sorted.size() - most_stacks, "other stack") + "\n";
      text += "  " + members_text(*members) + "\n" + trace;
    }
    return text.empty() ? text : "stacks:\n" + text;
  }
  [[nodiscard]] std::string hints_text() const {
    std::string text;
    for (const std::string& hint : hints_for(graph_, cycles_, channels_)) text += "hint: " + hint + "\n";
    return text;
  }

 private:
  enum class place : std::uint8_t { elsewhere, behind, on_cycle };

  // Every task on a cycle is marked, then whoever waits for a marked one, until no more is found.
  void find_places() {
    where_is_.assign(graph_.nodes().size(), place::elsewhere);
    std::vector<std::vector<std::size_t>> waiters(graph_.nodes().size());
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i)
      for (const std::size_t to : graph_.next(i)) waiters[to].push_back(i);
    std::vector<std::size_t> marked;
    for (const cycle& c : cycles_)
      for (const std::size_t i : c) {
        where_is_[i] = place::on_cycle;
        marked.push_back(i);
      }
    while (!marked.empty()) {
      const std::size_t last = marked.back();
      marked.pop_back();
      for (const std::size_t i : waiters[last]) {
        if (where_is_[i] != place::elsewhere) continue;
        where_is_[i] = place::behind;
        marked.push_back(i);
      }
    }
  }
  [[nodiscard]] std::vector<std::size_t> those(place p) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < where_is_.size(); ++i)
      if (where_is_[i] == p) found.push_back(i);
    return found;
  }
  [[nodiscard]] bool is_on_cycle(std::size_t i) const { return where_is_[i] == place::on_cycle; }
  [[nodiscard]] std::string list_text(const char* title, const std::vector<std::size_t>& tasks) const {
    if (tasks.empty()) return {};
    std::string text = title;
    for (std::size_t k = 0; k < tasks.size() && k < most_tasks; ++k)
      text += line_of(tasks[k], detail_level::states) + findings_text(tasks[k]);
    if (tasks.size() > most_tasks) text += "  and " + how_many(tasks.size() - most_tasks, "more task") + "\n";
    return text;
  }
  // Two runtimes number their tasks independently.
  [[nodiscard]] std::string label(std::size_t i) const {
    const wait_graph::node& n = graph_.nodes()[i];
    return label_of(*n.task) + (several_ ? " of runtime " + std::to_string(n.runtime + 1) : "");
  }
  // Who waits for how long, for what, and where.
  [[nodiscard]] std::string line_of(std::size_t i, detail_level d) const {
    const wait_graph::node& n = graph_.nodes()[i];
    const bool joins = graph_.kind_of(i) == kind_number::join && !graph_.next(i).empty();
    const std::string what = joins ? "for the end of " + label(graph_.next(i).front()) : wait_text(*n.in, *n.task, d);
    return "  " + label(i) + "  waits " + duration_text(n.task->age) + " " + what + "   " + site_text(n) + "\n";
  }
  [[nodiscard]] static std::string short_name(std::string function) {
    constexpr std::string_view unnamed = "(anonymous namespace)::";
    for (std::size_t at = 0; (at = function.find(unnamed, at)) != std::string::npos;)
      function.erase(at, unnamed.size());
    return short_function(function);
  }
  // A lock is usually taken by a guard of the standard library, whose place says nothing. Then the innermost frame of the
  // user says more.
  [[nodiscard]] static std::string site_text(const wait_graph::node& n) {
    if (std::string_view(n.task->where.file_name()).find("/c++/") != std::string_view::npos) {
      const std::vector<symbol> frames = symbols_of(n.in->frames_of(*n.task));
      for (const symbol& s : without_weft(frames))
        if (s.line != 0 && s.file.find("/c++/") == std::string::npos)
          return std::string(file_text(s.file)) + ":" + std::to_string(s.line) + " in " + short_name(s.function);
    }
    return place_text(n.task->where);
  }
  // How the next task of a cycle keeps this one waiting. The next one stands in the line below, unless it is the first.
  [[nodiscard]] std::string link_text(std::size_t i, std::size_t next, bool closes) const {
    const kind_number how = graph_.kind_of(i);
    if (how == kind_number::join) return closes ? "     which closes the cycle\n" : "";
    const object_view* const o = graph_.object_of(i);
    std::string text = "     ";
    if (o == nullptr) {
      text += "which is held by";
    } else {
      const std::size_t space = o->name.rfind(' ');
      text += o->name.substr(space == std::string::npos ? 0 : space + 1);
      if (!o->place.empty() && how != kind_number::scope) text += " (" + o->place + ")";
      text += how == kind_number::scope ? " ends after" : " is held by";
    }
    return text + (closes ? " " + label(next) + ", which closes the cycle\n" : "\n");
  }
  [[nodiscard]] std::string findings_text(std::size_t i) const {
    for (const channel_finding& f : channels_)
      if (f.waiter == i) return "     " + finding_text(f) + "\n";
    return {};
  }
  [[nodiscard]] std::string finding_text(const channel_finding& f) const {
    const char* const end = f.receives ? "writer" : "reader";
    const std::string ends = f.ends() == 1 ? std::string("its only ") + end : "its " + how_many(f.ends(), end);
    const std::string are = f.ends() == 1 ? " is" : " are";
    if (f.ends() == 0) return std::string("it has no ") + end;
    if (f.is_certain) return ends + are + " held by " + label(f.waiter) + " itself";
    if (f.in_variables) return ends + are + " probably held by a variable of the program";
    if (f.others.empty())
      return ends + (f.ends() == 1 ? " was" : " were") + " found in no other task; perhaps on the heap";
    std::string text = ends + are + " probably held by ";
    constexpr std::size_t most = 4;
    for (std::size_t k = 0; k < f.others.size() && k < most; ++k) text += (k == 0 ? "" : ", ") + label(f.others[k]);
    if (f.others.size() > most) text += " and " + std::to_string(f.others.size() - most) + " more";
    return text;
  }
  [[nodiscard]] std::string members_text(const std::vector<std::size_t>& members) const {
    constexpr std::size_t most = 4;
    if (members.size() == 1) return label(members.front());
    std::string text = how_many(members.size(), "task") + ": ";
    for (std::size_t k = 0; k < members.size() && k < most; ++k) text += (k == 0 ? "" : ", ") + label(members[k]);
    return text + (members.size() > most ? ", …" : "");
  }

  const bool several_;
  const bool all_stacks_;
  const wait_graph graph_;
  const std::vector<cycle> cycles_;
  std::vector<place> where_is_;
  std::vector<channel_finding> channels_;
};

std::vector<snapshot> take_snapshots(std::span<sched::scheduler* const> all) {
  std::vector<snapshot> seen;
  for (sched::scheduler* s : all)
    if (live_tasks_in(*s) != 0) seen.push_back(take_snapshot(*s, {.stacks = true, .running = false, .objects = true}));
  return seen;
}

std::string banner_text(const std::vector<snapshot>& seen, const proof& p) {
  auto idle = std::chrono::milliseconds::max();
  for (const snapshot& s : seen)
    for (const task_view& t : s.tasks) idle = std::min(idle, t.age);
  const bool one = p.what.tasks == 1;
  const std::size_t helpers = p.threads.foreign.size();
  return "weft: DEADLOCK: " + how_many(p.what.tasks, "task") + (one ? " is" : " are") +
         " parked and nothing in this process can wake " + (one ? "it" : "one") + "\n  " +
         (seen.size() > 1 ? how_many(seen.size(), "runtime") + ", " : "") + how_many(p.what.workers, "worker") +
         " asleep, 0 runnable, no timers, no I/O, " +
         (helpers == 0 ? std::string("no other threads")
                       : how_many(helpers, "other thread") + " (runtime_options::alone: never to wake a task)") +
         ", idle for " + duration_text(idle) + "\n";
}

}  // namespace

std::string report_of(std::span<sched::scheduler* const> all, const proof& p) {
  const std::vector<snapshot> seen = take_snapshots(all);
  const report r(seen, true);
  return banner_text(seen, p) + r.cycles_text() + r.behind_text() + r.others_text() + r.stacks_text() + r.hints_text();
}

std::string report_of_cycles(const std::vector<snapshot>& seen) {
  const report r(seen, false);
  return "weft: DEADLOCK of " + how_many(r.on_cycles(), "task") +
         " while others go on: they wait for each other, and only cancellation ends it\n" + r.cycles_text() +
         r.behind_text() + r.stacks_text() + r.hints_text();
}

}  // namespace weft::inline v1::observe
