#include "support/watchdog.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "sched/scheduler.hpp"
#include "task/name.hpp"

namespace support {
namespace {

namespace task = weft::task;
namespace sched = weft::sched;

struct registry {
  std::mutex mutex;
  std::vector<sched::scheduler*> known;
};

// Never destroyed: a runtime may be static.
registry& known_runtimes() {
  static auto* r = new registry;
  return *r;
}

const char* name_of(sched::worker_state s) {
  switch (s) {
    case sched::worker_state::active: return "ACTIVE";
    case sched::worker_state::idle_spin: return "IDLE_SPIN";
    case sched::worker_state::sleep: return "SLEEP";
    case sched::worker_state::draining: return "DRAINING";
    case sched::worker_state::dead: return "DEAD";
  }
  return "?";
}

const char* name_of(const weft::waits::wait_kind* kind) { return kind == nullptr ? "-" : kind->name; }

void print(std::FILE* to, const task::record& t, task::phase p) {
  const char* what = task::name_of(p);
  if (p == task::phase::active)
    what = t.running.load(weft::base::relaxed) == task::run_state::running ? "RUNNING" : "RUNNABLE";
  char name[task::name_capacity];
  (void)task::try_copy_name(t, name);
  const std::source_location waits_at = t.waits_at.load(weft::base::relaxed);
  std::fprintf(to, "  task #%llu \"%s\" %s word %016llx, last wait: %s at %s:%u\n",
               static_cast<unsigned long long>(t.id), name, what, static_cast<unsigned long long>(t.word.peek()),
               name_of(t.waits_for.load(weft::base::relaxed)), waits_at.file_name(), waits_at.line());
}

void print_tasks(std::FILE* to, sched::scheduler& s) {
  constexpr std::size_t most = 200;
  std::size_t alive = 0;
  s.records().walk([&](const task::record& t) {
    const task::phase p = task::state_word::phase_of(t.word.peek());
    if (p == task::phase::init || p >= task::phase::done) return;
    if (++alive <= most) print(to, t, p);
  });
  std::fprintf(to, "  %zu tasks have not ended%s\n", alive, alive > most ? " (not all are listed)" : "");
}

void print_workers(std::FILE* to, sched::scheduler& s) {
  for (sched::worker* w : s.workers()) {
    const sched::worker_counters& c = w->counters();
    const auto n = [](const sched::counter& of) { return static_cast<unsigned long long>(of.get()); };
    std::fprintf(
        to,
        "  worker %d %s, visible work: %s; spawned %llu finished %llu dispatched %llu parks %llu wakes %llu steals "
        "%llu of %llu sleeps %llu\n",
        w->id(), name_of(w->state()), w->queues().has_visible_work() ? "yes" : "no", n(c.spawned), n(c.finished),
        n(c.dispatched), n(c.parks), n(c.wakes), n(c.steals), n(c.steal_attempts), n(c.sleeps));
  }
  std::fprintf(to, "  global queue %zu, searching %zu, sleeping %zu, accepts %s\n", s.queues().global.size(),
               s.idle().searching(), s.idle().sleeping(), s.ending().accepts() ? "yes" : "no");
}

}  // namespace

watched::watched(weft::runtime& r) : watched(sched::core_of(r)) {}

watched::watched(sched::scheduler& s) : scheduler_(&s) {
  std::lock_guard hold(known_runtimes().mutex);
  known_runtimes().known.push_back(scheduler_);
}

watched::~watched() {
  std::lock_guard hold(known_runtimes().mutex);
  std::vector<sched::scheduler*>& all = known_runtimes().known;
  all.erase(std::find(all.begin(), all.end(), scheduler_));
}

watched_runtime::watched_runtime(const weft::runtime_options& options) : runtime_(options) {
  std::lock_guard hold(known_runtimes().mutex);
  known_runtimes().known.push_back(&core());
}

watched_runtime::~watched_runtime() {
  runtime_.shutdown();
  std::lock_guard hold(known_runtimes().mutex);
  std::vector<sched::scheduler*>& all = known_runtimes().known;
  all.erase(std::find(all.begin(), all.end(), &core()));
}

void dump_runtimes(std::FILE* to) {
  std::unique_lock hold(known_runtimes().mutex, std::try_to_lock);
  if (!hold) {
    std::fputs("the list of runtimes is busy\n", to);
    return;
  }
  for (sched::scheduler* s : known_runtimes().known) {
    std::fprintf(to, "runtime %p\n", static_cast<void*>(s));
    print_workers(to, *s);
    print_tasks(to, *s);
  }
  if (known_runtimes().known.empty()) std::fputs("no runtime is known to the watchdog\n", to);
  std::fflush(to);
}

watchdog::watchdog(std::chrono::seconds limit, std::string what)
    : what_(std::move(what)),
      thread_([this, limit] { keep_watch(limit); }) {}

watchdog::~watchdog() {
  {
    std::lock_guard hold(mutex_);
    is_over_ = true;
  }
  over_.notify_all();
  thread_.join();
}

void watchdog::keep_watch(std::chrono::seconds limit) {
  std::unique_lock hold(mutex_);
  if (over_.wait_for(hold, limit, [this] { return is_over_; })) return;
  std::fprintf(stderr, "watchdog: %s did not end within %lld s\n", what_.c_str(),
               static_cast<long long>(limit.count()));
  dump_runtimes(stderr);
  std::abort();
}

}  // namespace support
