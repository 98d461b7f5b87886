#include "observe/deadlock_rule.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/known_threads.hpp"
#include "sched/scheduler.hpp"

namespace weft::inline v1::observe {
namespace {

using sched::scheduler;

// ---- the runtimes ---------------------------------------------------------------------------------------------------

std::uint64_t finished_in(scheduler& s) noexcept {
  std::uint64_t sum = 0;
  for (const sched::worker* w : s.workers()) sum += w->counters().finished.get();
  return sum;
}

// Asks the idle set with its lock, so that all that the worker did before it entered is seen: its queues, the tickets of
// the tasks that it parked, the threads that it signalled.
bool is_asleep(scheduler& s, const sched::worker& w) noexcept { return w.is_dead() || s.idle().is_asleep(w.id()); }

bool holds_work(sched::worker& w) noexcept {
  return w.queues().has_visible_work() || !w.queues().slot.empty() || !w.queues().inbox.empty();
}

bool is_still(scheduler& s, stillness& seen) noexcept {
  std::size_t asleep = 0;
  for (sched::worker* w : s.workers()) {
    if (!is_asleep(s, *w)) return false;
    if (!w->is_dead()) ++asleep;
    // A worker that has died keeps its queues and timers.
    if (holds_work(*w) || w->timers().next_deadline() != base::never_ns) return false;
    const sched::worker_counters& c = w->counters();
    seen.progress += c.spawned.get() + c.finished.get() + c.dispatched.get() + c.wakes.get() + c.sleeps.get();
  }
  seen.workers += asleep;
  // The one who chooses a sleeper takes it out of the set and counts it as searching, in one step under the lock.
  return !s.stopping() && asleep == s.pool().live() && s.idle().searching() == 0 && s.idle().sleeping() == asleep &&
         s.queues().size() == 0 && !s.without_stack().any() && !s.polling().is_wanted() && !s.ending().has_guests();
}

// Every task that has not ended is parked. A task that somebody has claimed is active, wherever it is on its way to.
bool all_parked(scheduler& s, stillness& seen) noexcept {
  std::uint64_t parked = 0;
  bool all = true;
  s.records().walk([&](const task::record& t) {
    const std::uint64_t word = t.word.load();
    switch (task::state_word::phase_of(word)) {
      case task::phase::parked:
        ++parked;
        seen.tickets += word * 31 + reinterpret_cast<std::uintptr_t>(&t);
        break;
      case task::phase::active:
      case task::phase::parking: all = false; break;
      case task::phase::init:  // free, or not yet spawned by somebody who then works
      case task::phase::done:
      case task::phase::cancelled: break;
    }
  });
  seen.tasks += parked;
  return all && parked == live_tasks_in(s);
}

// ---- the threads ----------------------------------------------------------------------------------------------------

std::vector<int> threads_of_process() {
  std::vector<int> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> threads(::opendir("/proc/self/task"), &::closedir);
  if (threads == nullptr) return all;
  while (const dirent* entry = ::readdir(threads.get()))
    if (const int id = std::atoi(entry->d_name); id != 0) all.push_back(id);
  std::sort(all.begin(), all.end());
  return all;
}

// The 20th word of /proc/self/stat, the 18th behind the name. A long list of threads is read in pieces, and one that ends in
// between may hide another one.
std::size_t number_of_threads() {
  const int file = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[1024];
  const ssize_t n = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (n <= 0) return 0;
  text[n] = '\0';
  const char* at = std::strrchr(text, ')');
  for (int nth = 2; at != nullptr && nth < 20; ++nth) at = std::strchr(at + 1, ' ');
  return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
}

// Whether the line of /proc/…/stat behind the name, ` S 1 1 1 0 -1 4194368 …`, is that of a thread of the kernel's that
// works for io_uring (PF_IO_WORKER, which no thread can give itself). What it completes is an event of the driver.
bool works_for_kernel(const char* behind_name) {
  constexpr unsigned long is_io_worker = 0x10;
  unsigned long flags = 0;
  return std::sscanf(behind_name, " %*c %*d %*d %*d %*d %*d %lu", &flags) == 1 && (flags & is_io_worker) != 0;
}

// `12 (name) S …`: the name may contain anything. Returns false if the thread has ended, also if the system still lists
// it, or if it is one of the kernel's. In doubt it can act: the process may be out of descriptors, or not be allowed to
// look.
bool can_act(int thread, std::string& name) {
  name = '"' + std::string("?") + "\" (" + std::to_string(thread) + ")";
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/stat";
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno != ENOENT && errno != ESRCH;
  char text[256];
  const ssize_t n = ::read(file, text, sizeof text - 1);
  const int why = errno;
  ::close(file);
  if (n <= 0) return n < 0 && why != ESRCH;  // nothing can be read of a thread that is gone
  text[n] = '\0';
  const char* const begin = std::strchr(text, '(');
  const char* const end = std::strrchr(text, ')');
  if (begin == nullptr || end == nullptr || end[1] != ' ') return true;
  const std::string comm(begin + 1, end);
  name = '"' + comm + "\" (" + std::to_string(thread) + ")";
  return end[2] != 'Z' && end[2] != 'X' && !works_for_kernel(end + 1);
}

bool has_live_tasks(std::span<scheduler* const> all, const void* closing) noexcept {
  return std::any_of(all.begin(), all.end(),
                     [&](scheduler* s) { return &s->ending() == closing && live_tasks_in(*s) != 0; });
}

}  // namespace

std::uint64_t live_tasks_in(scheduler& s) noexcept {
  const std::uint64_t finished = finished_in(s);
  std::uint64_t spawned = s.ending().spawned_from_outside();
  for (const sched::worker* w : s.workers()) spawned += w->counters().spawned.get();
  return spawned - finished;
}

std::optional<stillness> look_for_stillness(std::span<scheduler* const> all) noexcept {
  base::fence_seq_cst();
  stillness seen;
  for (scheduler* s : all)
    if (!is_still(*s, seen)) return std::nullopt;
  for (scheduler* s : all)
    if (!all_parked(*s, seen)) return std::nullopt;
  return seen;
}

// The system's list is read first. A thread that starts later was started by one that is in the list, and one that ends
// later is in it. If a known thread is in the list by its number, it is that very thread, because the entry goes before
// the thread does.
thread_census count_threads(std::span<scheduler* const> all) {
  thread_census seen;
  seen.all = threads_of_process();
  std::vector<int> unknown = seen.all;
  seen.is_complete = !unknown.empty() && unknown.size() == number_of_threads();
  struct {
    std::span<scheduler* const> all;
    thread_census& seen;
    std::vector<int>& unknown;
  } with{all, seen, unknown};
  base::for_each_known_thread(
      [](void* argument, const base::thread_sight& t) {
        auto& [runtimes, count, rest] = *static_cast<decltype(with)*>(argument);
        const bool rests = t.rests && (t.closes == nullptr || has_live_tasks(runtimes, t.closes));
        if (!t.is_own && !rests) {
          if (t.id != ::getpid() && std::binary_search(rest.begin(), rest.end(), t.id)) ++count.users;
          return;
        }
        if (std::erase(rest, t.id) == 0) return;
        ++(t.is_own ? count.own : count.resting);
        if (!t.is_own) count.rests.emplace_back(t.id, t.number);
      },
      &with);
  std::sort(seen.rests.begin(), seen.rests.end());
  std::string name;
  for (const int thread : unknown) {
    if (!can_act(thread, name)) continue;
    seen.foreign.push_back(name);
    if (thread == ::getpid()) ++seen.users;
  }
  return seen;
}

std::optional<proof> prove_deadlock(std::span<scheduler* const> all, bool alone) {
  const std::optional<stillness> before = look_for_stillness(all);
  if (!before || before->tasks == 0) return std::nullopt;
  thread_census threads = count_threads(all);
  if (!threads.is_complete || threads.users != 0 || (!threads.foreign.empty() && !alone)) return std::nullopt;
  // One thread may have signalled another one, after that was looked at, and rested before it was looked at itself. And
  // whatever a thread did that ended before it could be listed is seen now.
  if (count_threads(all) != threads) return std::nullopt;
  if (look_for_stillness(all) != before) return std::nullopt;
  return proof{*before, std::move(threads)};
}

}  // namespace weft::inline v1::observe
