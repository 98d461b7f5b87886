// Values that belong to a task.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/worker.hpp"
#include "support/death_test.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;

const weft::task_local<std::string> user("nobody");
const weft::task_local<int> depth;

// req: W-1
TEST(TaskLocal, has_its_initial_value_where_it_is_not_bound) {
  support::watchdog guard(60s);
  EXPECT_EQ(user.get(), "nobody");
  EXPECT_EQ(*depth, 0);
  EXPECT_EQ(user->size(), 6u);
  watched_runtime rt(2);
  rt->run([] {
    EXPECT_EQ(*user, "nobody");
    depth.with(1, [] { EXPECT_EQ(*user, "nobody"); });
  });
}

// req: W-1
TEST(TaskLocal, is_bound_for_the_length_of_a_block_and_the_innermost_counts) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    EXPECT_EQ(user.with("alice",
                        [] {
                          EXPECT_EQ(*user, "alice");
                          {
                            const weft::task_local<std::string>::binding inner(user, 3, 'b');
                            EXPECT_EQ(*user, "bbb");
                            depth.with(4, [] {
                              EXPECT_EQ(*user, "bbb");
                              EXPECT_EQ(*depth, 4);
                            });
                          }
                          EXPECT_EQ(*user, "alice");
                          EXPECT_THROW(user.with("carol", [] { throw std::runtime_error("x"); }), std::runtime_error);
                          EXPECT_EQ(*user, "alice");
                          return 7;
                        }),
              7);
    EXPECT_EQ(*user, "nobody");
    int n = 0;
    EXPECT_EQ(&depth.with(1, [&]() -> int& { return n; }), &n);
  });
}

// req: W-1
TEST(TaskLocal, is_inherited_by_children_and_grandchildren_as_it_was_when_they_were_spawned) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
      const auto grandchild = [] { return weft::spawn([] { return *user; }); };
      user.with("alice", [&] {
        auto child = weft::spawn([&] {
          EXPECT_EQ(*user, "alice");
          return user.with("bob", grandchild).join() + "/" + grandchild().join();
        });
        user.with("later", [&] { EXPECT_EQ(child.join(), "bob/alice"); });
        weft::with_scope([](weft::scope& s) { EXPECT_EQ(s.spawn([] { return *user; }).join(), "alice"); });
        const auto [one, two] =
            weft::join_all([] { return *user; }, [] { return user.with("x", [] { return *user; }); });
        EXPECT_EQ(one, "alice");
        EXPECT_EQ(two, "x");
      });
      EXPECT_EQ(weft::spawn([] { return *user; }).join(), "nobody");
    });
    EXPECT_EQ(rt->spawn([] { return *user; }).join(), "nobody") << "from outside there is nothing to inherit";
  });
}

// req: W-1
TEST(TaskLocal, a_child_keeps_the_value_after_the_block_has_ended) {
  at_worker_counts_in_a_task([] {
    base::atomic<bool> go{false};
    weft::join_handle<std::string> child;
    user.with(std::string(200, 'a'), [&] {
      depth.with(3, [&] {
        child = weft::spawn([&] {
          while (!go.load()) weft::yield();
          EXPECT_EQ(*depth, 3);
          return *user;
        });
      });
    });
    EXPECT_EQ(*user, "nobody");
    go = true;
    EXPECT_EQ(child.join(), std::string(200, 'a'));
  });
}

// req: W-1
TEST(TaskLocal, on_an_outside_thread_it_cannot_be_bound) {
  support::watchdog guard(60s);
  EXPECT_THROW(user.with("x", [] { FAIL(); }), weft::usage_error);
  EXPECT_THROW(const weft::task_local<int>::binding b(depth, 1), weft::usage_error);
  watched_runtime rt(2);
  rt->run([] {
    user.with("alice", [] {
      std::thread outside([] { EXPECT_EQ(*user, "nobody"); });
      outside.join();
    });
  });
}

// Counts constructions and destructions.
struct counted {
  inline static base::atomic<int> made{0};
  inline static base::atomic<int> gone{0};
  explicit counted(int) { ++made; }
  counted() { ++made; }
  counted(const counted&) { ++made; }
  ~counted() { ++gone; }
};

// req: W-1
TEST(TaskLocal, each_value_is_destroyed_once_by_the_last_task_that_has_it) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    counted::made = 0;
    counted::gone = 0;
    {
      const weft::task_local<counted> local;
      watched_runtime rt(workers);
      const std::size_t rounds = scaled(500);
      rt->run([&] {
        for (std::size_t i = 0; i < rounds; ++i) {
          std::vector<weft::join_handle<void>> children;
          local.with(1, [&] {
            for (int k = 0; k < 5; ++k)
              children.push_back(weft::spawn([&] {
                weft::yield();
                local.with(2, [&] { weft::spawn([] { weft::yield(); }).detach(); });
              }));
            if (i % 2 == 0) weft::yield();
          });
          if (i % 3 == 0) children.front().cancel();
          for (auto& c : children) try {
              c.join();
            } catch (const weft::task_cancelled&) {}
        }
      });
      rt->shutdown();
      EXPECT_EQ(counted::gone.load(), counted::made.load() - 1) << "all but the initial one";
    }
    EXPECT_EQ(counted::gone.load(), counted::made.load());
  });
}

// req: W-1
TEST(TaskLocal, a_task_that_is_refused_or_cannot_be_made_gives_its_share_back) {
  support::watchdog guard(60s);
  counted::made = 0;
  counted::gone = 0;
  const weft::task_local<counted> local;
  watched_runtime rt(2);
  struct cannot_be_copied {
    cannot_be_copied() = default;
    cannot_be_copied(const cannot_be_copied&) { throw std::runtime_error("copy"); }
    void operator()() const {}
  };
  rt->run([&] {
    std::optional<weft::scope_ref> ended;
    weft::with_scope([&](weft::scope& s) { ended = s.ref(); });
    local.with(1, [&] {
      EXPECT_THROW(ended->spawn([] {}), weft::scope_closed);
      const cannot_be_copied f;
      EXPECT_THROW((void)weft::spawn(f), std::runtime_error);
      weft::with_scope([&](weft::scope& s) { EXPECT_THROW(s.spawn(f), std::runtime_error); });
    });
    EXPECT_EQ(counted::gone.load(), 1);
  });
}

int worker_id() { return weft::sched::this_worker()->id(); }  // not the thread's id, which compilers take for constant

// req: W-1
TEST(TaskLocal, stays_with_the_task_when_it_moves_to_another_worker) {
  support::watchdog guard(110s);
  watched_runtime rt(4);
  base::atomic<std::size_t> moves{0};
  rt->run([&] {
    weft::with_scope([&](weft::scope& s) {
      for (int i = 1; i <= 16; ++i)
        s.spawn([&, i] {
          depth.with(i, [&] {
            const void* const before = &depth.get();
            for (std::size_t k = 0; k < scaled(2'000) || moves.load() < 10; ++k) {
              const int on = worker_id();
              if (k % 3 == 0)
                weft::spawn([i] { EXPECT_EQ(*depth, i); }).join();
              else
                weft::sleep_for(1us);
              if (worker_id() != on) ++moves;
              ASSERT_EQ(*depth, i);
              ASSERT_EQ(&depth.get(), before);
            }
          });
        });
    });
  });
  EXPECT_GE(moves.load(), 10u);
}

struct alignas(128) wide {
  int value = 0;
};

// req: W-1
TEST(TaskLocal, values_are_aligned_as_they_must_be) {
  support::watchdog guard(60s);
  const weft::task_local<wide> wides;
  const weft::task_local<char> chars;
  const weft::task_local<long double> longs;
  watched_runtime rt(2);
  rt->run([&] {
    chars.with('x', [&] {
      wides.with(wide{3}, [&] {
        longs.with(1.5L, [&] {
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&wides.get()) % alignof(wide), 0u);
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&longs.get()) % alignof(long double), 0u);
          EXPECT_EQ(wides->value, 3);
          EXPECT_EQ(*chars, 'x');
          EXPECT_EQ(*longs, 1.5L);
        });
      });
    });
  });
}

// req: W-1
TEST(TaskLocal, a_value_may_suspend_when_it_is_made_and_when_it_is_destroyed) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    struct suspends {
      explicit suspends(int) { weft::yield(); }
      suspends() = default;
      ~suspends() {
        if (weft::this_task::running()) weft::sleep_for(10us);
      }
    };
    const weft::task_local<suspends> local;
    rt->run([&] {
      weft::with_scope([&](weft::scope& s) {
        for (int i = 0; i < 20; ++i)
          s.spawn([&] {
            local.with(1, [&] { weft::spawn([] { weft::yield(); }).detach(); });
            weft::yield();
          });
      });
    });
  });
}

using TaskLocalDeathTest = support::threadsafe_death_test;

// req: W-1
TEST_F(TaskLocalDeathTest, bindings_that_end_in_another_order_are_a_failed_check) {
  EXPECT_DEATH(
      {
        weft::runtime rt({.workers = 1});
        rt.run([] {
          auto first = std::make_unique<weft::task_local<int>::binding>(depth, 1);
          auto second = std::make_unique<weft::task_local<int>::binding>(depth, 2);
          first.reset();
        });
      },
      "another order");
}

}  // namespace
