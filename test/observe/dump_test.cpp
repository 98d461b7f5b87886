// Dumps: from where they can be asked for, what they put together, and that they work while nothing else does.
#include <fcntl.h>
#include <unistd.h>

#include <fstream>

#include "observe/looks.hpp"

namespace {

using namespace support::usual;
using namespace looks;

[[gnu::noinline]] void serve(weft::event& stop) {
  stop.wait();
  asm volatile("");  // no tail call
}
// The number that it counts is of no use, but the loop has to stay.
[[gnu::noinline]] void spin(const base::atomic<bool>& stop, support::latch& begun) {
  begun.count_down();
  while (!stop.load(base::relaxed)) asm volatile("");
}
[[gnu::noinline]] void read_a_byte(int from) {
  char byte = 0;
  while (::read(from, &byte, 1) < 0) asm volatile("");
}

// req: KC-8 W-6
TEST(Dump, puts_tasks_that_do_the_same_in_one_group) {
  const support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::event stop;
    constexpr std::size_t count = 1000;
    for (std::size_t i = 0; i < count; ++i)
      rt->spawn({.name = "conn-" + std::to_string(i)}, [&] { serve(stop); }).detach();
    until([&] { return parked_tasks(rt.core()) == count; });
    const std::string text = dump_of(rt);
    EXPECT_TRUE(contains(text, "weft dump: 1,000 tasks (0 running, 0 runnable, 1,000 parked)")) << text;
    EXPECT_EQ(count_of(text, "\n-- "), 1) << text;
    EXPECT_TRUE(contains(text, "-- 1,000 tasks, ")) << text;
    EXPECT_TRUE(contains(text, ": wait for event E1 (not set)  #1 \"conn-0\", #2 \"conn-1\"")) << text;
    EXPECT_EQ(count_of(text, "serve("), 1) << text;
    EXPECT_TRUE(contains(text, "dump_test.cpp:")) << text;
    EXPECT_EQ(count_of(dump_of(rt, weft::dump_form::tasks), "\n-- "), count);
    stop.set();
  });
}

// req: KC-8
TEST(Dump, can_be_asked_for_by_a_task) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([&] {
      weft::event stop;
      auto waits = weft::spawn({.name = "waiter"}, [&] { serve(stop); });
      until_parked(waits);
      const std::string text = dump_of(rt);
      EXPECT_TRUE(contains(text, "\"waiter\" waits ")) << text;
      EXPECT_TRUE(contains(text, "\"main\" runs on worker ")) << text;
      stop.set();
      waits.join();
    });
  });
}

// TSan delivers signals late, or never to a loop that calls nothing.
// req: KC-8 OB-2
TEST(DumpNoTsan, works_while_every_worker_is_in_a_loop) {
  const support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    base::atomic<bool> stop{false};
    support::latch begun(workers);
    for (std::size_t i = 0; i < workers; ++i) rt->spawn({.name = "spins"}, [&] { spin(stop, begun); }).detach();
    begun.wait();
    auto queued = rt->spawn({.name = "queued"}, [] {});
    const std::string text = dump_of(rt);
    EXPECT_EQ(count_of(text, "\"spins\" runs on worker "), workers) << text;
    EXPECT_GE(count_of(text, "spin(std::atomic<bool> const&"), workers) << text;
    EXPECT_TRUE(contains(text, "\"queued\" has not begun\n     ")) << text;
    EXPECT_TRUE(contains(text, "works_while_every_worker_is_in_a_loop_Test::TestBody()")) << text;
    const std::string why = weft::why(queued.ref());
    EXPECT_TRUE(contains(why, "\"queued\" has not begun")) << why;
    EXPECT_TRUE(contains(why, "workers are busy")) << why;
    stop.store(true, base::relaxed);
    queued.join();
  });
}

// req: KC-8 OB-2
TEST(DumpNoTsan, works_while_a_worker_is_blocked_in_the_kernel) {
  const support::watchdog guard(110s);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  {
    watched_runtime rt(1);
    base::atomic<bool> begun{false};
    auto task = rt->spawn({.name = "reader"}, [&] {
      begun.store(true, base::relaxed);
      read_a_byte(ends[0]);
    });
    const auto is_blocked = [&] {
      return begun.load(base::relaxed) &&
             weft::sched::state_of_thread(rt.core().workers()[0]->thread_id()) == weft::sched::thread_state::sleeps;
    };
    until(is_blocked);
    const std::string text = dump_of(rt);
    EXPECT_TRUE(contains(text, "\"reader\" runs on worker 0 ")) << text;
    EXPECT_TRUE(contains(text, "sleeps in the kernel")) << text;
    EXPECT_TRUE(contains(text, "read_a_byte(int)")) << text;
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
    task.join();
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

// req: KC-8
TEST(Dump, shows_the_tree_of_scopes) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([&] {
      weft::event stop;
      auto owner = weft::spawn({.name = "owner"}, [&] {
        weft::with_scope([&](weft::scope& s) {
          auto child = s.spawn({.name = "child"}, [&] {
            weft::with_scope(
                [&](weft::scope& inner) { inner.spawn({.name = "grandchild"}, [&] { stop.wait(); }).join(); });
          });
          child.join();
        });
      });
      const auto text = [&] { return dump_of(rt, weft::dump_form::tree); };
      until([&] { return contains(text(), "\"grandchild\"  waits"); });
      const std::string tree = text();
      const std::string id = "#" + std::to_string(owner.id());
      EXPECT_TRUE(contains(tree, "\n" + id + " \"owner\"  waits ")) << tree;
      EXPECT_TRUE(contains(tree, "\n  scope of dump_test.cpp:")) << tree;
      EXPECT_TRUE(contains(tree, "\n      scope of dump_test.cpp:")) << tree;
      EXPECT_TRUE(contains(tree, "\n        #")) << tree;
      stop.set();
      owner.join();
    });
  });
}

// req: OB-4
TEST(Why, follows_a_chain_of_mutexes_to_the_task_that_holds_the_last) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
      weft::mutex first, second, third;
      weft::event stop;
      weft::label name(third, "accounts");
      const auto hold_and_take = [](weft::mutex& mine, weft::mutex& other) {
        mine.lock();
        other.lock();
        other.unlock();
        mine.unlock();
      };
      auto last = weft::spawn({.name = "last"}, [&] {
        third.lock();
        stop.wait();
        third.unlock();
      });
      until_parked(last);
      auto middle = weft::spawn({.name = "middle"}, [&] { hold_and_take(second, third); });
      until_parked(middle);
      auto outer = weft::spawn({.name = "outer"}, [&] { hold_and_take(first, second); });
      until_parked(outer);
      auto joiner = weft::spawn({.name = "joiner"}, [&] { outer.wait(); });
      until_parked(joiner);
      const std::string text = weft::why(joiner.ref());
      const auto label = [](const auto& t) { return "#" + std::to_string(t.id()) + " \"" + t.name() + "\""; };
      EXPECT_EQ(count_of(text, "\n"), 4) << text;
      EXPECT_TRUE(contains(text, label(joiner) + " waits ")) << text;
      EXPECT_TRUE(contains(text, "for the end of " + label(outer))) << text;
      EXPECT_TRUE(contains(text, "\n  <- " + label(outer) + " waits ")) << text;
      EXPECT_TRUE(contains(text, "is held by " + label(middle) + ", which waits ")) << text;
      EXPECT_TRUE(contains(text, "\n  <- mutex \"accounts\" is held by " + label(last) + ", which waits ")) << text;
      EXPECT_TRUE(contains(text, "for event E1 (not set")) << text;
      stop.set();
      joiner.join();
      outer.join();
      middle.join();
      last.join();
      EXPECT_FALSE(contains(weft::why(weft::this_task::ref()), "waits"));
    });
  });
}

// req: OB-4
TEST(Why, says_that_a_circle_is_closed) {
  at_worker_counts_in_a_task([] {
    weft::mutex one, two;
    support::latch both(2);
    const auto take = [&](weft::mutex& first, weft::mutex& second) {
      first.lock();
      both.arrive_and_wait();
      (void)throws_cancelled([&] {
        second.lock();
        second.unlock();
      });
      first.unlock();
    };
    auto alice = weft::spawn({.name = "alice"}, [&] { take(one, two); });
    auto bob = weft::spawn({.name = "bob"}, [&] { take(two, one); });
    until_parked(alice, bob);
    const std::string text = weft::why(alice.ref());
    EXPECT_EQ(count_of(text, "\n"), 3) << text;
    EXPECT_TRUE(contains(text, "\"alice\", which closes the circle")) << text;
    alice.cancel();
    alice.join();
    bob.join();
  });
}

TEST(Why, of_a_task_that_has_ended_says_so) {
  at_worker_counts_in_a_task([] {
    auto task = weft::spawn({.name = "short"}, [] {});
    const weft::task_ref ref = task.ref();
    task.join();
    EXPECT_TRUE(contains(weft::why(ref), "\"short\" has ended"));
  });
}

TEST(Label, lasts_as_long_as_it_lives) {
  at_worker_counts_in_a_task([] {
    weft::mutex m;
    m.lock();
    auto task = weft::spawn([&] {
      m.lock();
      m.unlock();
    });
    until_parked(task);
    {
      const weft::label name(m, "accounts");
      EXPECT_TRUE(contains(weft::why(task.ref()), "for mutex \"accounts\" (held by "));
    }
    EXPECT_TRUE(contains(weft::why(task.ref()), "for mutex M1 (held by "));
    m.unlock();
    task.join();
  });
}

}  // namespace
