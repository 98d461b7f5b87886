// What a snapshot calls exact is of one wait, whatever the tasks do meanwhile.
#include <csignal>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "observe/looks.hpp"
#include "observe/running.hpp"
#include "observe/symbols.hpp"

namespace {

using namespace support::usual;
using namespace looks;

// Each place to wait has a function and a semaphore of its own: the cookie by which a stack and a wait are known to
// belong together.
constexpr int places = 8;
struct gates {
  weft::semaphore gate[places] = {weft::semaphore(0), weft::semaphore(0), weft::semaphore(0), weft::semaphore(0),
                                  weft::semaphore(0), weft::semaphore(0), weft::semaphore(0), weft::semaphore(0)};
};

template <int N>
[[gnu::noinline]] void wait_at_place(gates& g) {
  g.gate[N].acquire();
  asm volatile("" ::"i"(N));  // no tail call, and no two places are the same function
}
constexpr void (*wait_at[places])(gates&) = {wait_at_place<0>, wait_at_place<1>, wait_at_place<2>, wait_at_place<3>,
                                             wait_at_place<4>, wait_at_place<5>, wait_at_place<6>, wait_at_place<7>};

// The same for tasks that run. A task takes about as long as a look at it.
template <int N>
[[gnu::noinline]] void run_at_place() {
  for (int i = 0; i < 20'000; ++i) asm volatile("" ::"i"(N));
}
constexpr void (*run_at[places])() = {run_at_place<0>, run_at_place<1>, run_at_place<2>, run_at_place<3>,
                                      run_at_place<4>, run_at_place<5>, run_at_place<6>, run_at_place<7>};

// The place whose function is on the stack; -1 if none is.
int place_of(const observe::stack_trace& frames) {
  static std::map<std::uintptr_t, int> known;  // one thread asks
  for (const observe::frame& f : frames) {
    const auto [at, is_new] = known.try_emplace(f.pc, -1);
    if (is_new)
      for (const observe::symbol& s : observe::symbols_of(f))
        for (int n = 0; n < places; ++n)
          if (contains(s.function, "_at_place<" + std::to_string(n) + ">")) at->second = n;
    if (at->second >= 0) return at->second;
  }
  return -1;
}

struct tally {
  std::size_t exact = 0, moving = 0, wrong = 0;
};

void check(const observe::snapshot& s, gates& g, tally& sum) {
  for (const observe::task_view& t : s.tasks) {
    if (t.name != "hopper" || t.state != weft::task_state::waiting) continue;
    if (!t.is_exact) {
      ++sum.moving;
      continue;
    }
    if (t.kind == nullptr || t.kind->number != weft::waits::kind_number::semaphore) continue;
    ++sum.exact;
    const int n = place_of(s.frames_of(t));
    const bool noted_there = n >= 0 && contains(t.where.function_name(), "N = " + std::to_string(n));
    if (n < 0 || t.object != &g.gate[n] || !noted_there) ++sum.wrong;
  }
}

// observe.S1: without the second load of the word this finds stacks of other waits.
// req: OB-2
TEST(Exact, an_exact_stack_is_of_its_wait_while_tasks_run_end_and_are_cancelled) {
  const support::watchdog guard(110s);
  watched_runtime rt({.workers = 4, .stack_cache_bytes = 0});
  gates g;
  base::atomic<bool> over{false};
  for (int i = 0; i < 64; ++i)
    rt->spawn({.name = "hopper"}, [&, i] {
        std::minstd_rand random(static_cast<unsigned>(i) + 1);
        while (!over.load(base::relaxed)) wait_at[random() % places](g);
      }).detach();
  // Keeps them moving.
  auto feeder = rt->spawn([&] {
    for (std::size_t i = 0; !over.load(base::relaxed); ++i) {
      weft::semaphore& gate = g.gate[i % places];
      if (gate.available() == 0) gate.release();
      if (i % 32 == 0) weft::yield();
    }
  });
  // Tasks that come and go, some of them cancelled, so that records and stacks are used again.
  auto churn = rt->spawn([&] {
    while (!over.load(base::relaxed)) {
      std::vector<weft::join_handle<void>> some;
      for (int i = 0; i < 16; ++i)
        some.push_back(weft::spawn({.name = "hopper"}, [&, i] {
          if (i % 2 == 0) (void)throws_cancelled([&] { wait_at[i % places](g); });
        }));
      for (auto& t : some) t.cancel();
      for (auto& t : some) t.wait();
    }
  });
  // Gives the pages of free stacks back all the time.
  std::thread trims([&] {
    while (!over.load(base::relaxed)) (void)rt.core().stacks().trim();
  });
  tally sum;
  const std::size_t rounds = support::soaked(2000, 20000);
  for (std::size_t i = 0; i < rounds; ++i)
    check(observe::take_snapshot(rt.core(), {.running = false, .objects = false}), g, sum);
  over.store(true, base::relaxed);
  trims.join();
  churn.join();
  feeder.join();
  for (auto& gate : g.gate) gate.release(64);
  EXPECT_EQ(sum.wrong, 0) << "of " << sum.exact << "; " << sum.moving << " were seen to move";
  EXPECT_GT(sum.exact, rounds);
}

// req: OB-2
TEST(Exact, a_dump_while_tasks_come_and_go_reads_nothing_that_is_gone) {
  const support::watchdog guard(110s);
  watched_runtime rt({.workers = 2, .stack_cache_bytes = 0});
  base::atomic<bool> over{false};
  base::atomic<std::size_t> lives{0};
  auto churn = rt->spawn([&] {
    for (; !over.load(base::relaxed); lives.fetch_add(1, base::relaxed)) {
      auto [out, in] = weft::make_channel<int>(4);
      auto m = std::make_unique<weft::mutex>();
      weft::with_scope([&, &to = out, &from = in](weft::scope& s) {
        for (int i = 0; i < 8; ++i)
          s.spawn([&] {
             while (from.recv()) weft::yield();
           }).detach();
        for (int i = 0; i < 4; ++i)
          s.spawn([&] {
             const std::lock_guard held(*m);
             weft::yield();
           }).detach();
        for (int i = 0; i < 64; ++i) (void)to.send(i);
        to.close();
      });
    }
  });
  std::thread trims([&] {
    while (!over.load(base::relaxed)) (void)rt.core().stacks().trim();
  });
  const std::size_t rounds = scaled(300);
  for (std::size_t i = 0; i < rounds || lives.load(base::relaxed) < rounds; ++i)
    EXPECT_TRUE(contains(dump_of(rt), "weft dump: "));
  over.store(true, base::relaxed);
  churn.join();
  trims.join();
}

// A task ends between the look at it and the answer of its thread, which is in the next task by then, on the same stack.
// req: OB-2
TEST(InterruptNoTsan, an_exact_stack_of_a_running_task_is_not_that_of_the_next_one) {
  const support::watchdog guard(110s);
  watched_runtime rt(2);
  base::atomic<bool> over{false};
  std::mutex lock;
  std::map<std::uint64_t, int> place_of_task;  // by id, of all that ever lived
  auto churn = rt->spawn([&] {
    std::minstd_rand random(1);
    while (!over.load(base::relaxed)) {
      std::vector<weft::join_handle<void>> some;
      for (int i = 0; i < 256; ++i) {
        const int n = static_cast<int>(random() % places);
        some.push_back(weft::spawn([n] { run_at[n](); }));
        const std::lock_guard held(lock);
        place_of_task.emplace(some.back().ref().id(), n);
      }
      for (auto& t : some) t.wait();
    }
  });
  std::size_t exact = 0, wrong = 0;
  const std::size_t wanted = support::soaked(1000, 10000);
  while (exact < wanted) {
    const observe::snapshot s = observe::take_snapshot(rt.core(), {.objects = false});
    for (const observe::task_view& t : s.tasks) {
      const int n = t.state == weft::task_state::running && t.is_exact ? place_of(s.frames_of(t)) : -1;
      const std::lock_guard held(lock);
      const auto known = place_of_task.find(t.id);
      if (n < 0 || known == place_of_task.end()) continue;
      ++exact;
      if (known->second != n) ++wrong;
    }
  }
  over.store(true, base::relaxed);
  churn.join();
  EXPECT_EQ(wrong, 0) << "of " << exact;
}

// observe.R2. With ours on top of the other handler each would call the other until the stack ends.
TEST(InterruptNoTsan, a_handler_that_is_set_later_and_calls_on_is_left_in_place) {
  const support::watchdog guard(110s);
  static base::atomic<int> calls{0};
  static struct sigaction ours{};
  base::atomic<int> id{0};
  base::atomic<bool> over{false};
  std::thread asked([&] {
    id.store(::gettid(), base::release);
    while (!over.load(base::acquire)) std::this_thread::yield();
  });
  until([&] { return id.load(base::acquire) != 0; });
  const auto answers = [&] { return observe::interrupt_and_copy(id.load(base::relaxed), 60'000'000'000).has_value(); };
  EXPECT_TRUE(answers());
  struct sigaction later{};
  later.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  later.sa_sigaction = [](int number, siginfo_t* info, void* context) {
    calls.fetch_add(1, base::relaxed);
    ours.sa_sigaction(number, info, context);
  };
  ASSERT_EQ(::sigaction(SIGURG, nullptr, &ours), 0);
  ASSERT_EQ(::sigaction(SIGURG, &later, nullptr), 0);
  calls.store(0, base::relaxed);
  EXPECT_TRUE(answers()) << "ours is called by the other one";
  ASSERT_EQ(::raise(SIGURG), 0);  // of no question: it goes to whoever was there before
  EXPECT_EQ(calls.load(base::relaxed), 2);
  ASSERT_EQ(::sigaction(SIGURG, &ours, nullptr), 0);
  over.store(true, base::release);
  asked.join();
}

// observe.R1. A thread answers a question that was given up long ago, while another thread is asked.
TEST(InterruptNoTsan, a_late_answer_changes_nothing) {
  const support::watchdog guard(110s);
  struct blocked_thread {
    base::atomic<int> id{0};
    base::atomic<bool> may_answer{false}, over{false};
    std::uintptr_t frame = 0;
    std::thread thread{[this] {
      sigset_t urgent;
      ::sigemptyset(&urgent);
      ::sigaddset(&urgent, SIGURG);
      ::pthread_sigmask(SIG_BLOCK, &urgent, nullptr);
      frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
      id.store(::gettid(), base::release);
      while (!may_answer.load(base::acquire)) std::this_thread::yield();
      ::pthread_sigmask(SIG_UNBLOCK, &urgent, nullptr);  // the signal comes here
      may_answer.store(false, base::release);
      while (!over.load(base::acquire)) std::this_thread::yield();
    }};
    ~blocked_thread() {
      over.store(true, base::release);
      thread.join();
    }
    void answer() {
      may_answer.store(true, base::release);
      until([&] { return !may_answer.load(base::acquire); });
    }
  };
  blocked_thread late, asked;
  until([&] { return late.id.load(base::acquire) != 0 && asked.id.load(base::acquire) != 0; });
  EXPECT_FALSE(observe::interrupt_and_copy(late.id.load(base::relaxed), 1'000'000).has_value());
  std::optional<observe::interrupted> got;
  std::thread asks([&] { got = observe::interrupt_and_copy(asked.id.load(base::relaxed), 60'000'000'000); });
  std::this_thread::sleep_for(20ms);  // the second question is most likely open by now; if not, this shows less
  late.answer();
  asked.answer();
  asks.join();
  ASSERT_TRUE(got.has_value());
  constexpr std::uintptr_t near = 65536;
  EXPECT_LT(asked.frame - got->at.sp(), near) << "the registers are those of another thread";
}

}  // namespace
