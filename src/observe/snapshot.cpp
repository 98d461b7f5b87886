#include "observe/snapshot.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/clock.hpp"
#include "observe/memory.hpp"
#include "observe/objects.hpp"
#include "observe/running.hpp"
#include "observe/stack_reader.hpp"
#include "task/name.hpp"
#include "wait/wait.hpp"
#include <weft/detail/kin.hpp>
#include <weft/detail/select_core.hpp>
#include <weft/detail/waitable.hpp>

namespace weft::inline v1::observe {
namespace {

using task::state_word;

// How often a task is looked at that moves meanwhile.
constexpr int most_looks = 3;

bool is_same_moment(std::uint64_t before, std::uint64_t after) noexcept {
  return state_word::phase_of(before) == state_word::phase_of(after) &&
         state_word::ticket_of(before) == state_word::ticket_of(after);
}

// The clock of the note is up to 10 ms late and may wrap around. An age below zero is none.
std::chrono::milliseconds age_of(std::uint32_t since_ms) noexcept {
  const auto now = static_cast<std::uint32_t>(base::now() / 1'000'000);
  const auto age = static_cast<std::int32_t>(now - since_ms);
  return std::chrono::milliseconds(age < 0 ? 0 : age);
}

// Copies of the arms of a select, of which each can say what it waits for. They are asked only after the ticket has
// shown that they were there.
class arms_copy {
 public:
  void read(const void* span_of_arms) noexcept {
    count_ = 0;
    const copy_of<std::span<const waits::arm>> where(span_of_arms);
    if (!where) return;
    const std::size_t n = std::min(where->size(), most_arms);
    waits::arm arms[most_arms];
    if (n == 0 || !try_copy(arms, where->data(), n * sizeof(waits::arm))) return;
    for (std::size_t i = 0; i < n; ++i)
      if (arms[i].what != nullptr && copy_arm(arms[i].what, rooms_[count_])) ++count_;
  }
  void tell(std::vector<wait_view>& to) const {
    for (std::size_t i = 0; i < count_; ++i) {
      const waits::subject s = reinterpret_cast<const waits::waitable*>(rooms_[i].bytes)->what();
      if (s.kind != nullptr) to.push_back({s.kind, s.object});
    }
  }

 private:
  static constexpr std::size_t most_arms = 16;  // more are not told of
  struct room {
    alignas(16) std::byte bytes[256];
  };
  // The size of an operation is not known, and the page behind it may be missing.
  static bool copy_arm(const void* from, room& to) noexcept {
    for (std::size_t n = sizeof to.bytes; n >= 64; n /= 2)
      if (try_copy(to.bytes, from, n)) return true;
    return false;
  }

  std::size_t count_ = 0;
  room rooms_[most_arms];
};

class taker {
 public:
  taker(sched::scheduler& of, snapshot_options how) : of_(of), how_(how) {}

  snapshot take() {
    const base::time_ns begin = base::now();
    of_.records().walk([&](const task::record& t) { visit(t); });
    std::sort(result_.tasks.begin(), result_.tasks.end(),
              [](const task_view& a, const task_view& b) { return a.id < b.id; });
    for (std::size_t i = 0; i < result_.tasks.size(); ++i) {
      result_.by_record.emplace(result_.tasks[i].record, static_cast<index>(i));
      if (result_.tasks[i].memory != nullptr) result_.by_memory.emplace(result_.tasks[i].memory, static_cast<index>(i));
    }
    look_at_workers();
    for (const task_view& t : result_.tasks) count(t);
    if (how_.objects) {
      gather_objects();
      read_objects(result_, how_.names);
    }
    result_.took = std::chrono::microseconds((base::now() - begin) / 1000);
    return std::move(result_);
  }

 private:
  void visit(const task::record& t) {
    const task::phase p = state_word::phase_of(t.word.load());
    if (p == task::phase::init || p >= task::phase::done) return;
    task_view v;
    v.record = &t;
    bool is_there = false;
    for (int looks = 0; looks < most_looks && !v.is_exact; ++looks) is_there = look(t, v);
    if (!is_there) return;
    char name[task::name_capacity];
    if (task::try_copy_name(t, name)) v.name = name;
    result_.tasks.push_back(std::move(v));
  }

  // Returns false if the task has ended. v.is_exact says whether all is of one moment.
  bool look(const task::record& t, task_view& v) {
    v.waits.clear();
    v.trace = none;
    v.word = t.word.load();
    v.id = t.id.load(base::acquire);
    v.kind = t.waits_for.load(base::acquire);
    v.object = t.waits_on().load(base::acquire);
    v.where = t.waits_at.load(base::acquire);
    v.age = age_of(t.since_ms.load(base::acquire));
    const task::run_state run = t.running.load(base::acquire);
    const unguarded u = look_unguarded(t);
    v.memory = u.memory;
    v.is_shielded = u.shields != 0;
    v.is_fresh = t.is_fresh();
    switch (state_word::phase_of(v.word)) {
      case task::phase::active: break;
      case task::phase::parking:
      case task::phase::parked: v.state = task_state::waiting; break;
      default: return false;
    }
    const bool is_parked = state_word::phase_of(v.word) == task::phase::parked;
    if (v.state == task_state::waiting && !is_parked) return true;  // it is on its way; a moment later it is parked
    const bool is_queued = !is_parked && run == task::run_state::runnable;
    if (!is_parked) v.state = is_queued ? task_state::ready : running_state(v.kind);

    // A task that was spawned keeps its operations until it has ended, and they are constants of the program.
    const copy_of<detail::operations> ops(v.is_fresh && is_queued ? u.ops : nullptr);
    const bool has_stack = how_.stacks && (is_parked || is_queued) && !v.is_fresh && reader_.copy(t, v.memory);
    const bool selects = is_parked && v.kind != nullptr && v.kind->number == waits::kind_number::select;
    if (selects) arms_.read(v.object);
    const copy_of<detail::kin> kin((u.extras & task::has_kin) != 0 ? u.body : nullptr);
    const bool stood_still = !is_queued || !has_stack || reader_.copy_is_the_same(t, v.memory);
    // The fence keeps the load below behind the copies. Whoever saw something that came after the claim sees the claim:
    // it came first, and on its way through the run queue it was released.
    base::fence_seq_cst();
    const std::uint64_t after = t.word.load();
    if (!is_same_moment(v.word, after) || t.id.load(base::relaxed) != v.id || !stood_still) return true;
    if (is_queued && t.running.load(base::relaxed) != task::run_state::runnable) return true;
    // Only now is what was copied known to be what it is taken for.
    v.is_exact = true;
    if (kin) v.scope = kin->of;
    if (ops) v.entry = reinterpret_cast<std::uintptr_t>(ops->run);
    if (selects)
      arms_.tell(v.waits);
    else if (is_parked && v.kind != nullptr)
      v.waits.push_back({v.kind, v.object});
    if (has_stack) v.trace = trace_of_copy();
    return true;
  }

  static task_state running_state(const waits::wait_kind* noted) noexcept {
    const bool blocks = noted != nullptr && noted->number == waits::kind_number::blocking;
    return blocks ? task_state::blocking : task_state::running;
  }

  index trace_of_copy() {
    frame frames[most_frames];
    return keep({frames, reader_.frames(frames)});
  }
  // Equal traces are kept once.
  index keep(std::span<const frame> frames) {
    if (frames.empty()) return none;
    std::uint64_t hash = 1469598103934665603U;
    for (const frame& f : frames) hash = (hash ^ f.pc) * 1099511628211U;
    const auto [first, last] = known_.equal_range(hash);
    for (auto i = first; i != last; ++i)
      if (std::equal(frames.begin(), frames.end(), result_.traces[i->second].begin(), result_.traces[i->second].end(),
                     [](const frame& a, const frame& b) { return a.pc == b.pc; }))
        return i->second;
    const auto added = static_cast<index>(result_.traces.size());
    result_.traces.emplace_back(frames.begin(), frames.end());
    known_.emplace(hash, added);
    return added;
  }

  void look_at_workers() {
    for (sched::worker* w : of_.workers()) {
      const sched::worker_state s = w->state();
      if (s == sched::worker_state::dead) continue;
      worker_view v;
      v.id = w->id();
      v.thread_id = w->thread_id();
      const task::record* current = w->current();
      if (current != nullptr) {
        v.what = worker_view::doing::runs;
        v.task = result_.find(current);
        // The record may have got another task since it was visited, which is not listed.
        if (v.task != none && !is_still_there(result_.tasks[v.task])) v.task = none;
        v.age = w->same_task_for(base::now());
        v.kernel_state = kernel_state_of(v.thread_id);  // before a signal wakes it
      } else if (s == sched::worker_state::sleep) {
        v.what = worker_view::doing::sleeps;
      } else if (s == sched::worker_state::draining) {
        v.what = worker_view::doing::leaves;
      }
      if (v.task != none) take_running(v);
      result_.workers.push_back(v);
    }
  }

  // The task that the worker was in a moment ago may have parked, before or after it was visited.
  void take_running(worker_view& w) {
    task_view& t = result_.tasks[w.task];
    if (t.state != task_state::running && t.state != task_state::blocking) {
      if (t.is_exact) return;
      t.state = task_state::running;
    }
    t.on_worker = static_cast<index>(result_.workers.size());
    if (!how_.running || !how_.stacks) return;
    if (const std::optional<interrupted> now = interrupt_and_copy(w.thread_id)) {
      // The task is found by the stack that the thread was on. Between two tasks it is another than the worker says. And
      // a stack goes from a task that has ended to the next one, as the record does.
      if (!is_still_there(t)) {
        t.trace = none;
        t.is_exact = false;
      } else if (now->is_on(t.memory)) {
        frame frames[most_frames];
        t.trace = keep({frames, now->frames(frames)});
        t.is_exact = true;
      }
    }
  }

  void count(const task_view& t) noexcept {
    switch (t.state) {
      case task_state::ready: ++result_.runnable; break;
      case task_state::running:
      case task_state::blocking: ++result_.running; break;
      case task_state::waiting: ++result_.parked; break;
      case task_state::ended: break;
    }
  }

  void gather_objects() {
    std::unordered_map<const void*, index> seen;
    for (std::size_t i = 0; i < result_.tasks.size(); ++i) {
      task_view& t = result_.tasks[i];
      for (wait_view& w : t.waits) {
        if (w.object == nullptr) continue;
        const auto [at, is_new] = seen.try_emplace(w.object, static_cast<index>(result_.objects.size()));
        if (is_new) result_.objects.push_back({.address = w.object, .number = w.kind->number});
        w.about = at->second;
        std::vector<index>& waiters = result_.objects[w.about].waiters;
        if (waiters.empty() || waiters.back() != i) waiters.push_back(static_cast<index>(i));
      }
    }
  }

  sched::scheduler& of_;
  const snapshot_options how_;
  snapshot result_;
  stack_reader reader_;
  arms_copy arms_;
  std::unordered_multimap<std::uint64_t, index> known_;
};

}  // namespace

index snapshot::find(std::uint64_t id) const noexcept {
  const auto at = std::lower_bound(tasks.begin(), tasks.end(), id,
                                   [](const task_view& t, std::uint64_t wanted) { return t.id < wanted; });
  return at == tasks.end() || at->id != id ? none : static_cast<index>(at - tasks.begin());
}

index snapshot::find(const task::record* r) const noexcept {
  const auto at = by_record.find(r);
  return at == by_record.end() ? none : at->second;
}

bool is_still_there(const task_view& t) noexcept {
  base::fence_seq_cst();  // keeps the loads behind whatever was looked at before
  const std::uint64_t now = t.record->word.load();
  // A record that is prepared for its next task has the id of the last one for a moment.
  return state_word::phase_of(now) != task::phase::init && !state_word::is_final(now) &&
         t.record->id.load(base::relaxed) == t.id;
}

bool still_waits(const task_view& t) noexcept {
  const std::uint64_t now = t.record->word.load();
  return state_word::phase_of(now) == task::phase::parked && is_same_moment(t.word, now) &&
         t.record->id.load(base::relaxed) == t.id;
}

snapshot take_snapshot(sched::scheduler& of, snapshot_options how) { return std::make_unique<taker>(of, how)->take(); }

}  // namespace weft::inline v1::observe
