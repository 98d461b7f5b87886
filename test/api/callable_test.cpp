// Any callable, any result.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/watchdog.hpp"
#include "task/task.hpp"

namespace {

using namespace std::chrono_literals;
using support::watched_runtime;
namespace base = weft::base;

int forty_two() { return 42; }
void nothing() {}
int global_value = 1;
int& global_reference() { return global_value; }

struct no_address {
  int value = 3;
  int operator&() const = delete;  // NOLINT(google-runtime-operator): that is the point
};

class Callable : public testing::Test {
 protected:
  support::watchdog guard_{20s};
  watched_runtime rt_{2};
};

// req: BZ-8
TEST_F(Callable, functions_by_name_and_by_pointer) {
  EXPECT_EQ(rt_->spawn(forty_two).join(), 42);
  EXPECT_EQ(rt_->spawn(&forty_two).join(), 42);
  int (*const pointer)() = forty_two;
  EXPECT_EQ(rt_->spawn(pointer).join(), 42);
  rt_->spawn(nothing).join();
  EXPECT_EQ(rt_->run([] { return weft::spawn(forty_two).join(); }), 42);
}

// req: BZ-8
TEST_F(Callable, std_function_and_std_bind) {
  EXPECT_EQ(rt_->spawn(std::function<int()>([] { return 3; })).join(), 3);
  const std::function<std::string()> f = [] { return std::string("f"); };
  EXPECT_EQ(rt_->spawn(f).join(), "f");
  EXPECT_EQ(rt_->spawn(std::bind([](int a) { return a + 1; }, 4)).join(), 5);
}

// req: BZ-8
TEST_F(Callable, lvalues_are_copied_and_rvalues_moved) {
  struct callable {
    std::shared_ptr<int> shared = std::make_shared<int>(1);
    long operator()() const { return shared.use_count(); }
  };
  callable c;
  EXPECT_GE(rt_->spawn(c).join(), 2) << "a copy beside ours";
  EXPECT_EQ(c.shared.use_count(), 1) << "destroyed at the end of the task";
  EXPECT_EQ(rt_->spawn(std::move(c)).join(), 1);
  EXPECT_EQ(c.shared, nullptr);
}

// req: BZ-8
TEST_F(Callable, move_only_closures_and_results) {
  auto in = std::make_unique<int>(6);
  auto h = rt_->spawn([in = std::move(in)]() mutable {
    *in += 1;
    return std::move(in);
  });
  std::unique_ptr<int> out = h.join();
  EXPECT_EQ(*out, 7);
}

// req: BZ-8
TEST_F(Callable, a_callable_that_may_only_be_called_as_an_rvalue) {
  struct once {
    std::string value = "once";
    std::string operator()() && { return std::move(value); }
  };
  EXPECT_EQ(rt_->spawn(once{}).join(), "once");
}

// req: BZ-8
TEST_F(Callable, a_reference_as_result_refers_to_the_same_object) {
  int& got = rt_->spawn(global_reference).join();
  EXPECT_EQ(&got, &global_value);
  const std::string text = "text";
  const std::string& same = rt_->spawn([&]() -> const std::string& { return text; }).join();
  EXPECT_EQ(&same, &text);
}

// req: BZ-8
TEST_F(Callable, an_over_aligned_closure_and_an_over_aligned_result_lie_where_they_must) {
  struct alignas(256) wide {
    std::array<std::uint64_t, 4> words{};
    [[nodiscard]] bool is_aligned() const { return reinterpret_cast<std::uintptr_t>(this) % 256 == 0; }
  };
  for (int i = 0; i < 100; ++i) {
    auto closure = rt_->spawn([w = wide{}] { return w.is_aligned(); });
    EXPECT_TRUE(closure.join());
    auto result = rt_->spawn([i] {
      wide w;
      w.words[3] = static_cast<std::uint64_t>(i);
      return w;
    });
    EXPECT_EQ(result.join().words[3], static_cast<std::uint64_t>(i));
  }
  struct alignas(64) self_check {
    bool ok = reinterpret_cast<std::uintptr_t>(this) % 64 == 0;
    self_check() = default;
    self_check(self_check&& other) noexcept : ok(other.ok && reinterpret_cast<std::uintptr_t>(this) % 64 == 0) {}
  };
  EXPECT_TRUE(rt_->spawn([] { return self_check(); }).join().ok);
}

// req: BZ-8
TEST_F(Callable, a_closure_of_any_size) {
  const auto with = [&](auto bytes) {
    std::array<unsigned char, decltype(bytes)::value> data{};
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 31);
    auto h = rt_->spawn([data] {
      for (std::size_t i = 0; i < data.size(); ++i)
        if (data[i] != static_cast<unsigned char>(i * 31)) return false;
      return true;
    });
    EXPECT_TRUE(h.join()) << data.size();
  };
  with(std::integral_constant<std::size_t, 1>());
  with(std::integral_constant<std::size_t, weft::task::fiber::inline_capacity - 16>());
  with(std::integral_constant<std::size_t, weft::task::fiber::inline_capacity - 8>());
  with(std::integral_constant<std::size_t, weft::task::fiber::inline_capacity>());
  with(std::integral_constant<std::size_t, weft::task::fiber::inline_capacity + 1>());
  with(std::integral_constant<std::size_t, 4'096>());
  with(std::integral_constant<std::size_t, 100'000>());
}

// req: BZ-8
TEST_F(Callable, a_large_result) {
  auto h = rt_->spawn([] {
    std::array<int, 5'000> a{};
    a[4'999] = 9;
    return a;
  });
  EXPECT_EQ(h.join()[4'999], 9);
}

// req: BZ-8
TEST_F(Callable, a_result_that_cannot_be_moved_is_built_in_place_and_can_be_waited_for) {
  static base::atomic<int> alive{0};
  struct fixed {
    fixed() { ++alive; }
    fixed(fixed&&) = delete;
    ~fixed() { --alive; }
  };
  auto h = rt_->spawn([] { return fixed(); });
  h.wait();
  EXPECT_EQ(alive.load(), 1);
  h.detach();
  EXPECT_EQ(alive.load(), 0);
}

// req: BZ-8
TEST_F(Callable, a_move_of_the_result_that_throws_reaches_the_joiner_and_leaks_nothing) {
  static base::atomic<int> alive{0};
  struct throws_on_move {
    throws_on_move() { ++alive; }
    throws_on_move(throws_on_move&&) { throw std::runtime_error("move"); }
    ~throws_on_move() { --alive; }
  };
  auto h = rt_->spawn([] { return throws_on_move(); });
  h.wait();
  EXPECT_THROW((void)h.join(), std::runtime_error);
  EXPECT_FALSE(h.joinable());
  EXPECT_EQ(alive.load(), 0);
}

// req: BZ-8
TEST_F(Callable, a_copy_that_throws_while_spawning_leaves_the_runtime_as_it_was) {
  static base::atomic<int> alive{0};
  struct throws_on_copy {
    throws_on_copy() { ++alive; }
    throws_on_copy(const throws_on_copy&) { throw std::runtime_error("copy"); }
    throws_on_copy(throws_on_copy&&) noexcept { ++alive; }
    ~throws_on_copy() { --alive; }
    void operator()() const {}
  };
  struct large_throws_on_copy : throws_on_copy {
    std::array<char, 1'000> more{};
  };
  {
    const throws_on_copy small;
    const large_throws_on_copy large;
    for (int i = 0; i < 1'000; ++i) {
      EXPECT_THROW((void)rt_->spawn(small), std::runtime_error);
      EXPECT_THROW((void)rt_->spawn(large), std::runtime_error);
    }
    rt_->run([&] {
      for (int i = 0; i < 1'000; ++i) {
        EXPECT_THROW((void)weft::spawn(small), std::runtime_error);
        EXPECT_THROW((void)weft::spawn(large), std::runtime_error);
      }
    });
    EXPECT_EQ(alive.load(), 2);
  }
  EXPECT_LE(rt_.core().records().slab_count(), 4u) << "records came back";
  EXPECT_EQ(rt_->run([] { return 1; }), 1);
  rt_->shutdown();  // waits for nobody
  const weft::runtime_statistics s = rt_->statistics();
  EXPECT_EQ(s.spawned, s.finished);
}

// req: BZ-8 LS-M1
TEST_F(Callable, the_closure_is_destroyed_when_the_task_ends_not_when_it_is_joined) {
  auto shared = std::make_shared<int>(1);
  auto h = rt_->spawn([shared] { return *shared; });
  h.wait();
  EXPECT_EQ(shared.use_count(), 1);
  EXPECT_EQ(h.join(), 1);
  auto failing = rt_->spawn([shared]() -> int { throw 1; });
  failing.wait();
  EXPECT_EQ(shared.use_count(), 1);
  EXPECT_THROW((void)failing.join(), int);
}

// req: BZ-8
TEST_F(Callable, anything_may_be_thrown) {
  EXPECT_THROW(rt_->spawn([] { throw 5; }).join(), int);
  EXPECT_THROW(rt_->spawn([] { throw "text"; }).join(), const char*);
  EXPECT_THROW(rt_->spawn([] { throw std::make_shared<int>(1); }).join(), std::shared_ptr<int>);
  try {
    rt_->spawn([] {
         try {
           throw std::runtime_error("inner");
         } catch (...) {
           std::throw_with_nested(std::logic_error("outer"));
         }
       })
        .join();
    ADD_FAILURE();
  } catch (const std::logic_error& e) {
    EXPECT_STREQ(e.what(), "outer");
    EXPECT_THROW(std::rethrow_if_nested(e), std::runtime_error);
  }
}

// req: BZ-8
TEST_F(Callable, a_handle_is_a_result_too) {
  auto outer = rt_->spawn([] { return weft::spawn([] { return 8; }); });
  EXPECT_EQ(outer.join().join(), 8);
}

// req: BZ-8
TEST_F(Callable, a_const_class_type_is_a_result_too) {
  // NOLINTNEXTLINE(readability-const-return-type): users have such functions
  const std::string got = rt_->spawn([]() -> const std::string { return "const"; }).join();
  EXPECT_EQ(got, "const");
}

// req: BZ-8
TEST_F(Callable, a_result_may_overload_the_address_operator) {
  EXPECT_EQ(rt_->spawn([] { return no_address(); }).join().value, 3);
}

// req: BZ-8
TEST_F(Callable, an_rvalue_reference_as_result_refers_to_the_same_object) {
  int&& got = rt_->spawn([]() -> int&& { return std::move(global_value); }).join();
  EXPECT_EQ(&got, &global_value);
}

// req: BZ-8
TEST_F(Callable, try_join_gives_any_type_of_result) {
  const auto ended = [&](auto f) {
    auto h = rt_->spawn(f);
    h.wait();
    return h;
  };
  EXPECT_EQ(ended([]() -> int&& { return std::move(global_value); }).try_join(), &global_value);
  EXPECT_EQ(ended(global_reference).try_join(), &global_value);
  // NOLINTNEXTLINE(readability-const-return-type): users have such functions
  EXPECT_EQ(ended([]() -> const std::string { return "const"; }).try_join(), "const");
  EXPECT_EQ(ended([] { return no_address(); }).try_join()->value, 3);
}

// req: BZ-8
TEST_F(Callable, a_callable_may_overload_the_address_operator) {
  struct callable : no_address {
    std::shared_ptr<int> kept = std::make_shared<int>(1);
    long operator()() const { return kept.use_count(); }
  };
  callable c;
  EXPECT_EQ(rt_->spawn(c).join(), 2);
  EXPECT_EQ(c.kept.use_count(), 1);
}

}  // namespace
