#include "task/state.hpp"

#include "task/task.hpp"

namespace weft::inline v1::task {

const char* name_of(phase p) noexcept {
  switch (p) {
    case phase::init: return "INIT";
    case phase::active: return "RUNNABLE/RUNNING";
    case phase::parking: return "PARKING";
    case phase::parked: return "PARKED";
    case phase::done: return "DONE";
    case phase::cancelled: return "CANCELLED";
  }
  return "?";
}

void illegal_transition(const char* from, const char* to) noexcept {
  base::failf("illegal task transition %s -> %s (docs/lifecycle.md, legality matrix)", from, to);
}

const char* state_name(const record& t) noexcept {
  const phase p = state_word::phase_of(t.word.peek());
  if (p != phase::active) return name_of(p);
  switch (t.running.load(base::relaxed)) {
    case run_state::none: return "WAKING";
    case run_state::runnable: return "RUNNABLE";
    case run_state::running: return "RUNNING";
  }
  return "?";
}

void expect_queueable(const record& t, run_state from) noexcept {
  if (state_word::phase_of(t.word.peek()) != phase::active || t.running.load(base::relaxed) != from)
    illegal_transition(state_name(t), "RUNNABLE (in a run queue)");
}

void expect_runnable(const record& t, const char* to) noexcept {
  if (state_word::phase_of(t.word.peek()) != phase::active || t.running.load(base::relaxed) != run_state::runnable)
    illegal_transition(state_name(t), to);
}

}  // namespace weft::inline v1::task
