// LS-S in a running scheduler: every state as others see it, and what must not enter a queue.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/death_test.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "wait/fiber_wait.hpp"
#include "wait/permit.hpp"

namespace {

using namespace std::chrono_literals;
using weft::task::phase;
using weft::task::record;
using weft::task::run_state;
using weft::task::state_word;

phase phase_of(const record* r) { return state_word::phase_of(r->word.load()); }

// req: LS-S
TEST(Lifecycle, every_state_is_seen_in_the_life_of_a_task) {
  support::watchdog guard(60s, "the states of a task");
  support::watched_runtime rt(1);
  // The only worker is kept, so that what is spawned stays RUNNABLE.
  support::latch let_go;
  support::latch kept;
  auto keeper = rt->spawn([&] {
    kept.count_down();
    let_go.hold();
  });
  kept.wait();
  struct shared {
    weft::base::atomic<bool> go{false};
    weft::base::atomic<record*> self{nullptr};
    weft::base::atomic<int> asked{0};
    weft::base::atomic<phase> when_asked_first{phase::init};
    weft::base::atomic<phase> when_asked_again{phase::init};
  } s;
  auto h = rt->spawn([&s] {
    s.self.store(weft::waits::current_task());
    // The condition of park_if is asked RUNNING, and once more PARKING.
    const auto still = [](const void* p) {
      auto* all = static_cast<shared*>(const_cast<void*>(p));
      const int n = all->asked.fetch_add(1);
      (n == 0 ? all->when_asked_first : all->when_asked_again).store(phase_of(all->self.load()));
      return !all->go.load();
    };
    while (!s.go.load()) weft::waits::park_if(still, &s, std::source_location::current());
  });
  // RUNNABLE: among the records there is one that is active and not running.
  int runnable = 0;
  rt.core().records().walk([&](const record& r) {
    if (phase_of(&r) == phase::active && r.running.load() == run_state::runnable) ++runnable;
  });
  EXPECT_EQ(runnable, 1);
  let_go.count_down();
  keeper.join();
  support::until([&] { return s.self.load() != nullptr && phase_of(s.self.load()) == phase::parked; });
  EXPECT_EQ(s.when_asked_first.load(), phase::active);
  EXPECT_EQ(s.when_asked_again.load(), phase::parking);
  const weft::task_ref ref = h.ref();
  s.go.store(true);
  ref.unpark();
  h.join();
  EXPECT_EQ(phase_of(s.self.load()), phase::done);
}

// req: LS-S
TEST(Lifecycle, a_cancelled_task_ends_in_cancelled_and_one_that_ignores_it_in_done) {
  support::watchdog guard(60s, "a cancelled task");
  support::watched_runtime rt(2);
  weft::base::atomic<bool> never{false};
  weft::base::atomic<record*> r{nullptr};
  auto obeys = rt->spawn([&] {
    r.store(weft::waits::current_task());
    for (;;) weft::park_if(never, false);
  });
  support::until([&] { return r.load() != nullptr && phase_of(r.load()) == phase::parked; });
  obeys.cancel();
  obeys.wait();
  EXPECT_EQ(phase_of(r.load()), phase::cancelled);
  support::latch go;
  auto ignores = rt->spawn([&] {
    r.store(weft::waits::current_task());
    go.hold();
  });
  ignores.cancel();
  go.count_down();
  ignores.wait();
  EXPECT_EQ(phase_of(r.load()), phase::done);
}

// req: LS-S
TEST(Lifecycle, a_task_is_in_init_until_its_spawn_is_committed) {
  support::watchdog guard(60s, "a spawn that is not committed");
  support::watched_runtime rt(1);
  using body = weft::detail::body<void (*)()>;
  const auto s = weft::detail::begin_spawn(&rt.core(), nullptr, sizeof(body), alignof(body), &body::ops, true);
  EXPECT_EQ(phase_of(static_cast<record*>(s.task)), phase::init);
  weft::detail::abort_spawn(s);
}

// req: LS-S LS-P2 LS-P1
TEST(Lifecycle, a_wake_that_meets_parking_is_not_queued_but_recovered_by_the_committing_stack) {
  support::watchdog guard(60s, "a wake that meets PARKING");
  support::watched_runtime rt(1);
  struct shared {
    record* self = nullptr;
    int asked = 0;
    std::uint64_t wakes_before = 0;
    std::uint64_t wakes_inside = 0;
    weft::base::atomic<bool> unparked{false};
    support::watched_runtime* rt = nullptr;
  } s;
  s.rt = &rt;
  rt->run([&s] {
    s.self = weft::waits::current_task();
    const auto still = [](const void* p) {
      auto* all = static_cast<shared*>(const_cast<void*>(p));
      if (all->asked++ == 1) {
        EXPECT_EQ(phase_of(all->self), phase::parking);
        all->wakes_before = (*all->rt)->statistics().wakes;
        weft::waits::unpark(*all->self);  // the waker meets PARKING
        all->wakes_inside = (*all->rt)->statistics().wakes;
        EXPECT_EQ(phase_of(all->self), phase::parking);
        EXPECT_NE(all->self->word.peek() & state_word::wake_pending, 0u);
      }
      return true;
    };
    weft::waits::park_if(still, &s, std::source_location::current());
  });
  EXPECT_EQ(s.asked, 2);
  EXPECT_EQ(s.wakes_inside, s.wakes_before) << "the waker queued nothing";
  EXPECT_EQ(rt->statistics().wakes, s.wakes_before + 1) << "the committing stack queued it, once";
  EXPECT_EQ(rt->statistics().parks, 1u);
}

// ---- must not ------------------------------------------------------------------------------------------------------

// A record outside of any runtime, brought to a state by legal steps.
struct lone_record {
  explicit lone_record(phase p) {
    r.word.reset_for_spawn(true);
    if (p == phase::init) return;
    r.word.spawned();
    if (p == phase::active) return;
    if (p >= phase::done) {
      (void)r.word.finish(p);
      return;
    }
    (void)r.word.begin_park(0);
    if (p == phase::parked) (void)r.word.commit_park();
  }
  weft::task::fiber r{0};
};

class MustNotDeathTest : public support::threadsafe_death_test {
 protected:
  void SetUp() override {
    if (!weft::base::checked_build) GTEST_SKIP() << "checked in checked builds";
    threadsafe_death_test::SetUp();
  }
};

// req: LS-S LS-F2
TEST_F(MustNotDeathTest, a_task_that_is_not_runnable_enters_a_run_queue) {
  for (const phase p : {phase::init, phase::parking, phase::parked, phase::done, phase::cancelled}) {
    lone_record t(p);
    EXPECT_DEATH(weft::sched::scheduler::schedule(&t.r), std::string(weft::task::name_of(p)) + " -> RUNNABLE");
  }
}

// req: LS-S LS-F2 LS-F4
TEST_F(MustNotDeathTest, a_task_that_is_in_a_queue_already_is_queued_again) {
  EXPECT_DEATH(
      {
        weft::runtime rt({.workers = 1});
        rt.run([] {
          auto h = weft::spawn([] {});
          record* queued = nullptr;
          weft::sched::this_worker()->owner().records().walk([&](record& r) {
            if (phase_of(&r) == phase::active && r.running.load() == run_state::runnable) queued = &r;
          });
          weft::sched::scheduler::schedule(queued);
          h.join();
        });
      },
      "RUNNABLE -> RUNNABLE");
}

// req: LS-S LS-F2
TEST_F(MustNotDeathTest, a_task_that_runs_is_queued) {
  EXPECT_DEATH(weft::run([] { weft::sched::scheduler::schedule(weft::waits::current_task()); }), "RUNNING -> RUNNABLE");
}

// ---- the table in the documentation --------------------------------------------------------------------------------

std::string project() {
  const std::string here = __FILE__;
  return here.substr(0, here.rfind("/test/"));
}

std::vector<std::string> in_code_marks(const std::string& row) {
  std::vector<std::string> all;
  const std::regex code("`([^`]+)`");
  for (std::sregex_iterator i(row.begin(), row.end(), code), end; i != end; ++i) all.push_back((*i)[1]);
  return all;
}

// req: LS-O1
TEST(LifecycleDocument, every_file_and_function_in_its_tables_exists) {
  std::ifstream doc(project() + "/docs/lifecycle.md");
  if (!doc) GTEST_SKIP() << "docs/lifecycle.md is not written yet";
  std::string all_code;
  for (const char* file :
       {"src/task/state.hpp", "src/task/task.hpp", "src/sched/task_runner.hpp", "src/sched/intake.hpp",
        "src/sched/scheduler.hpp", "src/sched/ring.hpp", "src/sched/fresh_deque.hpp", "src/sched/lifo_slot.hpp",
        "src/sched/inbox.hpp", "src/sched/idle_set.hpp", "src/wait/fiber_wait.hpp", "src/wait/handle.cpp",
        "include/weft/detail/task_core.hpp"})
    all_code += support::file_text(project() + "/" + file);
  const std::regex path("[a-z_]+/[a-z_]+\\.[ch]pp");
  const std::regex function("(?:[a-z_]+::)*([a-z_]+)(?:\\(.*\\))?");
  std::size_t points = 0;
  bool in_points = false;
  for (std::string line; std::getline(doc, line);) {
    if (line.rfind("## ", 0) == 0) in_points = line.find("Linearization") != std::string::npos;
    if (line.rfind("| ", 0) != 0) continue;
    if (in_points && line.find("`") != std::string::npos) ++points;
    std::string code;  // of the files the row names; of all, if it names none
    std::vector<std::string> names;
    for (const std::string& text : in_code_marks(line)) {
      std::smatch parts;
      if (std::regex_match(text, path)) {
        const std::string content = support::file_text(project() + "/src/" + text);
        EXPECT_NE(content, "") << text << " does not exist: " << line;
        code += content;
      } else if (std::regex_match(text, parts, function)) {
        names.push_back(parts[1]);
      }
    }
    for (const std::string& name : names) {
      const std::regex word("\\b" + name + "\\b");
      EXPECT_TRUE(std::regex_search(code, word) || std::regex_search(all_code, word)) << name << ": " << line;
    }
  }
  EXPECT_GE(points, 11u) << "one row for each linearization point";
}

}  // namespace
