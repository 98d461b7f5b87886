// What a receive says that comes back without an element, and how its answer is used.
#include <concepts>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "chan/channels.hpp"

namespace {

using namespace chan_test;
using weft::recv_result;
using weft::recv_status;

// test(ends) for every kind of channel, all of them empty and open.
template <class Test>
void for_each_kind(Test&& test) {
  at_capacities([&](std::size_t capacity) { test(make<int>(capacity)); });
  test(weft::make_channel<int>(weft::conflated));
  test(weft::make_channel<std::unique_ptr<int>>(2));
  test(weft::make_oneshot<int>());
  test(weft::make_broadcast<int>(2));
  test(weft::make_watch(0));
}

template <class Reader>
typename Reader::value_type an_element() {
  if constexpr (std::same_as<typename Reader::value_type, int>)
    return 7;
  else
    return std::make_unique<int>(7);
}

TEST(Results, a_time_out_is_told_from_a_close) {
  support::watchdog guard(60s);
  for_each_kind([](auto ends) {
    EXPECT_EQ(ends.in.recv_for(1ms).status(), recv_status::timed_out);
    EXPECT_EQ(ends.in.recv_until(std::chrono::steady_clock::now()).status(), recv_status::timed_out);
    ends.out.close();
    EXPECT_EQ(ends.in.recv_for(1h).status(), recv_status::closed);
    EXPECT_EQ(ends.in.recv_until(std::chrono::steady_clock::now()).status(), recv_status::closed);
  });
}

TEST(Results, a_close_while_a_task_waits_is_told_from_its_time_out) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  for_each_kind([&](auto ends) {  // its trace belongs to this thread, so not inside of a task
    rt->run([&] {
      auto receiving = weft::spawn([&in = ends.in] { return in.recv_for(1h).status(); });
      weft::yield();
      ends.out.reset();
      EXPECT_EQ(receiving.join(), recv_status::closed);
    });
  });
}

TEST(Results, try_recv_tells_that_there_is_nothing_now_from_a_close) {
  support::watchdog guard(60s);
  for_each_kind([](auto ends) {
    EXPECT_EQ(ends.in.try_recv().status(), recv_status::empty);
    ends.out.reset();
    EXPECT_EQ(ends.in.try_recv().status(), recv_status::closed);
  });
}

TEST(Results, an_element_that_was_sent_before_the_close_is_received) {
  support::watchdog guard(60s);
  for_each_kind([](auto ends) {
    using reader_type = decltype(ends.in);
    if constexpr (requires { ends.in.capacity(); })
      if (ends.in.capacity() == 0) return;  // a sender would wait
    EXPECT_TRUE(ends.out.send(an_element<reader_type>()));
    ends.out.reset();
    const auto got = ends.in.recv_for(1h);
    EXPECT_EQ(got.status(), recv_status::received);
    EXPECT_TRUE(got);
    EXPECT_EQ(ends.in.try_recv().status(), recv_status::closed);
  });
}

TEST(Results, the_error_of_a_close_is_thrown_by_timed_receives_and_not_by_try_recv) {
  support::watchdog guard(60s);
  for_each_kind([](auto ends) {
    ends.out.close(std::make_exception_ptr(std::runtime_error("disk full")));
    EXPECT_EQ(ends.in.try_recv().status(), recv_status::closed);
    EXPECT_THROW((void)ends.in.recv_for(1h), std::runtime_error);
  });
}

TEST(Results, a_result_is_used_as_an_optional) {
  auto [out, in] = weft::make_channel<std::string>(8);
  for (const char* text : {"a", "bc", "d", "e", "f"}) EXPECT_TRUE(out.send(text));
  recv_result<std::string> first = in.try_recv();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(*first, "a");
  EXPECT_EQ(first.value(), "a");
  EXPECT_EQ(in.try_recv()->size(), 2u);
  const std::optional<std::string> copied = first;
  EXPECT_EQ(copied, "a");
  EXPECT_EQ(std::optional<std::string>(std::move(first)), "a");
  EXPECT_EQ(in.try_recv().value_or("none"), "d");
  std::optional<std::string> assigned;
  assigned = in.try_recv();
  EXPECT_EQ(assigned, "e");
  const std::optional<std::string> last = in.recv_for(1h);
  EXPECT_EQ(last, "f");
  EXPECT_EQ(in.try_recv().value_or("none"), "none");
  EXPECT_THROW((void)in.try_recv().value(), std::bad_optional_access);
  assigned = in.try_recv();
  EXPECT_EQ(assigned, std::nullopt);
}

TEST(Results, a_result_is_compared_as_an_optional_and_with_a_status) {
  auto [out, in] = weft::make_channel<int>(2);
  const auto none = in.try_recv();
  EXPECT_TRUE(out.send(1));
  const auto one = in.try_recv();
  EXPECT_TRUE(one == 1 && 1 == one && one != 2 && one == 1L);
  EXPECT_TRUE(one == std::optional<int>(1) && one != std::optional<int>() && one != std::nullopt);
  EXPECT_TRUE(none != 1 && none == std::nullopt && none == std::optional<int>() && none != std::optional<int>(1));
  EXPECT_TRUE(one == one && none == none && one != none);
  EXPECT_TRUE(one == recv_status::received && none == recv_status::empty && none != recv_status::closed);
  out.reset();
  EXPECT_TRUE(in.try_recv() == recv_status::closed);
  EXPECT_TRUE(in.try_recv() != none);  // both are without an element, for another reason
}

TEST(Results, a_result_of_something_that_moves_only_moves_and_needs_no_comparison) {
  struct handle {
    std::unique_ptr<int> to;
  };
  static_assert(std::movable<recv_result<handle>> && !std::copyable<recv_result<handle>>);
  static_assert(std::convertible_to<recv_result<handle>, std::optional<handle>>);
  static_assert(!std::convertible_to<const recv_result<handle>&, std::optional<handle>>);
  static_assert(std::is_trivially_copyable_v<recv_result<int>>);
  auto [out, in] = weft::make_channel<handle>(1);
  EXPECT_TRUE(out.send(handle{std::make_unique<int>(3)}));
  std::optional<handle> got = in.recv_for(1h);
  EXPECT_EQ(*got->to, 3);
  EXPECT_TRUE(out.send(handle{std::make_unique<int>(4)}));
  const handle taken = *in.try_recv();
  EXPECT_EQ(*taken.to, 4);
}

}  // namespace
