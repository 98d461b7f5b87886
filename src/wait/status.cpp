// What a task waits for, seen from outside (weft/task_status.hpp).
//
// The one who looks takes no lock and keeps nobody from continuing. A task notes its wait (note_site() in wait.hpp) and
// then takes a fresh ticket (begin_park()). So whoever reads a parked word, then the note, and then the same ticket in
// the same phase, has read the note of that wait: the next note comes after the claim, which changes the word. If the
// word has changed, the look is made again.
//
// wait.S1. The place, the kind and the time that are told of a waiting task belong to one wait.     test wait/a_status_*
//
// The note is stored relaxed, because a task parks often and is looked at rarely. The loads here are acquire loads, so
// they stay before the second look at the word. The claim comes before the next note on its way through the run queue,
// and on the processors that Weft runs on, whoever sees that note also sees the claim.
#include <weft/task_status.hpp>

#include <cstdio>
#include <utility>

#include "base/clock.hpp"
#include "sched/runtime_access.hpp"
#include "sched/scheduler.hpp"
#include "task/name.hpp"
#include <weft/detail/wait_kind.hpp>

namespace weft::inline v1 {
namespace {

using task::state_word;

task_state state_in(const task::record& t, std::uint64_t word, const waits::wait_kind* noted) noexcept {
  switch (state_word::phase_of(word)) {
    case task::phase::init: return task_state::ready;
    case task::phase::active: break;
    case task::phase::parking:
    case task::phase::parked: return task_state::waiting;
    case task::phase::done:
    case task::phase::cancelled: return task_state::ended;
  }
  if (t.running.load(base::relaxed) != task::run_state::running) return task_state::ready;
  const bool blocks = noted != nullptr && noted->number == waits::kind_number::blocking;
  return blocks ? task_state::blocking : task_state::running;
}

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

bool try_look(const task::record& t, task_status& s) noexcept {
  const std::uint64_t before = t.word.load();
  s.id = t.id.load(base::acquire);
  const waits::wait_kind* kind = t.waits_for.load(base::acquire);
  s.where = t.waits_at.load(base::acquire);
  s.age = age_of(t.since_ms.load(base::acquire));
  s.state = state_in(t, before, kind);
  s.waits_for = kind == nullptr ? std::string_view() : kind->name;
  return is_same_moment(before, t.word.load()) && t.id.load(base::relaxed) == s.id;
}

// Fills in all but the name.
void look(const task::record& t, task_status& s) noexcept {
  for (int tries = 0; tries < 4; ++tries)
    if (try_look(t, s)) return;
  // It was seen at several moments, so it does not wait for long.
  s.state = task_state::running;
  s.waits_for = {};
}

const char* verb_of(const task_status& s) noexcept {
  switch (s.state) {
    case task_state::ready: return "is ready to run";
    case task_state::running: return "runs";
    case task_state::blocking: return "is in a blocking call";
    case task_state::waiting: return "waits for ";
    case task_state::ended: break;
  }
  return "has ended";
}

}  // namespace

task_status task_ref::status() const {
  task_status s{.name = name()};
  look(*task::as_record(checked()), s);
  return s;
}

// A record may serve another task from one moment to the next. Then the look fails, or it tells of the other task.
std::vector<task_status> live_tasks(runtime& of) {
  std::vector<task_status> all;
  sched::core_of(of).records().walk([&](const task::record& t) {
    const task::phase p = state_word::phase_of(t.word.load());
    if (p == task::phase::init || p >= task::phase::done) return;
    char name[task::name_capacity];
    task_status s;
    if (task::try_copy_name(t, name)) s.name = name;
    look(t, s);
    if (s.state != task_state::ended) all.push_back(std::move(s));
  });
  return all;
}

std::string to_string(const task_status& s) {
  std::string text = "#" + std::to_string(s.id);
  if (!s.name.empty()) text += " \"" + s.name + "\"";
  text += std::string(" ") + verb_of(s);
  if (s.state == task_state::ended || s.waits_for.empty()) return text;
  if (s.state == task_state::waiting) text += s.waits_for;
  if (s.state == task_state::ready || s.state == task_state::running)
    text += "; its last wait was for " + std::string(s.waits_for);
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", static_cast<double>(s.age.count()) / 1000);
  text += std::string(" at ") + s.where.file_name() + ":" + std::to_string(s.where.line()) + ", " + seconds + " s";
  if (s.state == task_state::ready || s.state == task_state::running) text += " ago";
  return text;
}

}  // namespace weft::inline v1
