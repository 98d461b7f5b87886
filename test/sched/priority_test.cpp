// Urgent tasks come first, background tasks last, and no task waits for ever.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <weft/weft.hpp>

#include "support/order.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "support/worker_counts.hpp"

namespace {

using namespace std::chrono_literals;
using weft::attributes;
using weft::priority;
using weft::base::atomic;

// Also spawned in the opposite order of the one in which fresh tasks would run without priorities.
// req: KC-4
TEST(Priority, urgent_comes_first_and_background_last) {
  support::watchdog guard(60s, "tasks of three priorities");
  for (const bool reversed : {false, true}) {
    support::watched_runtime rt(1);
    std::string order;
    rt->run([&] {
      std::vector<priority> kinds{priority::background, priority::normal, priority::urgent};
      if (reversed) std::swap(kinds.front(), kinds.back());
      std::vector<weft::join_handle<void>> all;
      for (const priority p : kinds)
        for (int i = 0; i < 3; ++i)
          all.push_back(weft::spawn({.priority = p}, [&order, p] {
            order += p == priority::urgent ? 'u' : p == priority::normal ? 'n' : 'b';
          }));
      for (auto& t : all) t.join();
    });
    EXPECT_EQ(order, "uuunnnbbb");
  }
}

// req: KC-4
TEST(Priority, urgent_tasks_that_never_end_do_not_starve_the_others) {
  support::watchdog guard(60s, "a flood of urgent tasks");
  support::watched_runtime rt(1);
  std::string order;
  rt->run([&] {
    bool over = false;
    std::vector<weft::join_handle<void>> flood;
    for (int i = 0; i < 4; ++i)
      flood.push_back(weft::spawn({.priority = priority::urgent}, [&] {
        while (!over) {
          order += 'u';
          weft::yield();
        }
      }));
    weft::spawn([&] {
      for (int i = 0; i < 100; ++i) {
        order += 'n';
        weft::yield();
      }
    }).join();
    over = true;
    for (auto& t : flood) t.join();
  });
  EXPECT_LE(support::longest_without(order.substr(order.find('n'), order.rfind('n') - order.find('n')), 'n'), 16u);
}

// req: KC-4
TEST(Priority, background_tasks_have_their_turn_though_others_never_pause) {
  support::watchdog guard(60s, "background tasks behind busy ones");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    rt->run([&] {
      atomic<bool> over{false};
      std::vector<weft::join_handle<void>> busy;
      for (std::size_t i = 0; i < 2 * workers; ++i)
        busy.push_back(weft::spawn([&] {
          while (!over.load()) weft::yield();
        }));
      weft::spawn({.priority = priority::background}, [&] {
        for (int i = 0; i < 10; ++i) weft::yield();
      }).join();
      over.store(true);
      for (auto& t : busy) t.join();
    });
  });
}

// A woken task keeps its priority, and so does one that comes from outside.
// req: KC-4
TEST(Priority, it_holds_for_wakes_and_from_outside) {
  support::watchdog guard(60s, "urgent tasks woken and injected");
  support::watched_runtime rt(1);
  std::string order;
  weft::event go;
  atomic<int> waiting{0};
  std::vector<weft::join_handle<void>> all;
  for (const priority p : {priority::background, priority::normal, priority::urgent})
    all.push_back(rt->spawn({.priority = p}, [&, p] {
      waiting.fetch_add(1);
      go.wait();
      order += p == priority::urgent ? 'u' : p == priority::normal ? 'n' : 'b';
    }));
  support::until([&] { return waiting.load() == 3; });
  rt->run([&] { go.set(); });
  for (auto& t : all) t.join();
  EXPECT_EQ(order, "unb");
}

}  // namespace
