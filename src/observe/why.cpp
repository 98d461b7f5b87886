// weft::why: the chain of who waits for whom, along edges that are certain: a lock and its owner, a join and its task,
// a scope and its children.
#include <algorithm>

#include "observe/dump.hpp"
#include "observe/objects.hpp"
#include "observe/text.hpp"
#include "task/name.hpp"
#include <weft/observe.hpp>

namespace weft::inline v1 {
namespace observe {
namespace {

std::string line_of(const snapshot& s, const task_view& t, const char* which = " ") {
  const std::string place = place_of(s, t);
  return label_of(t) + which + doing_text(s, t, detail_level::states) + (place.empty() ? "" : "   " + place);
}

// The task without which this one cannot continue, and how the two are connected.
struct edge {
  index to = none;
  std::string text;
};

edge next_of(const snapshot& s, const task_view& t) {
  if (t.state != task_state::waiting || !t.is_exact || t.waits.size() != 1 || t.waits[0].about == none) return {};
  const object_view& o = s.objects[t.waits[0].about];
  if (o.number == waits::kind_number::join) return {o.holder, ""};
  if (o.holder != none) return {o.holder, o.name + " is held by "};
  if (o.number != waits::kind_number::scope) return {};
  // The owner of a scope waits for all of its children; the one that has waited longest is the likeliest reason.
  edge e;
  for (std::size_t i = 0; i < s.tasks.size(); ++i) {
    if (s.tasks[i].scope != o.address) continue;
    if (e.to == none || s.tasks[i].age > s.tasks[e.to].age) e.to = static_cast<index>(i);
  }
  e.text = o.name + " waits among others for ";
  return e;
}

// Somebody who is ready waits for a worker.
std::string queue_text(const snapshot& s) {
  const worker_view* longest = nullptr;
  for (const worker_view& w : s.workers) {
    if (w.what != worker_view::doing::runs) return "  a worker is free and will come to it\n";
    if (longest == nullptr || w.age > longest->age) longest = &w;
  }
  if (longest == nullptr || longest->task == none) return {};
  std::string text = "  all " + std::to_string(s.workers.size()) + " workers are busy, " + number_text(s.runnable) +
                     (s.runnable == 1 ? " task is" : " tasks are") + " ready; the longest time in one task: ";
  return text + line_of(s, s.tasks[longest->task]) + "\n";
}

std::string others_text(const snapshot& s, const task_view& t) {
  std::string text;
  for (const wait_view& w : t.waits) {
    if (w.about == none) continue;
    const std::vector<index>& waiters = s.objects[w.about].waiters;
    if (waiters.size() < 2) continue;
    text += "  " + s.objects[w.about].name + " is waited for by " + number_text(waiters.size()) + " tasks:";
    for (std::size_t i = 0; i < std::min<std::size_t>(waiters.size(), 4); ++i)
      text += (i == 0 ? " " : ", ") + label_of(s.tasks[waiters[i]]);
    text += waiters.size() > 4 ? " …\n" : "\n";
  }
  return text;
}

// The tasks were looked at one after the other. If each of them has waited ever since, all waited at one moment.
bool all_still_wait(const snapshot& s, const std::vector<index>& passed) noexcept {
  base::fence_seq_cst();
  return std::all_of(passed.begin(), passed.end(), [&](index i) { return still_waits(s.tasks[i]); });
}

std::string chain_text(const snapshot& s, index from) {
  std::string text = line_of(s, s.tasks[from]) + "\n";
  std::vector<index> passed{from};
  for (index at = from;;) {
    const edge e = next_of(s, s.tasks[at]);
    if (e.to == none) {
      if (s.tasks[at].state == task_state::ready) return text + queue_text(s);
      return text + (passed.size() == 1 ? others_text(s, s.tasks[at]) : std::string());
    }
    const bool closes = std::find(passed.begin(), passed.end(), e.to) != passed.end();
    if (closes) {
      const bool is_deadlock = all_still_wait(s, passed);
      return text + "  <- " + e.text + label_of(s.tasks[e.to]) +
             (is_deadlock ? ", which closes the circle: a deadlock\n" : "\n");
    }
    text += "  <- " + e.text + line_of(s, s.tasks[e.to], e.text.empty() ? " " : ", which ") + "\n";
    passed.push_back(at = e.to);
  }
}

}  // namespace
}  // namespace observe

std::string why(const task_ref& task) {
  const std::uint64_t id = task.id();
  const task_status before = task.status();
  if (before.state == task_state::ended) return to_string(before) + "\n";
  sched::scheduler* of = task::as_record(detail::handle_access::task_of(task))->owner;
  const observe::snapshot s = observe::take_snapshot(*of);
  const observe::index at = s.find(id);
  return at == observe::none ? to_string(task.status()) + "\n" : observe::chain_text(s, at);
}

}  // namespace weft::inline v1
