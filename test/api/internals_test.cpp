// What only Weft itself needs is not offered to others.
#include <gtest/gtest.h>

#include <concepts>

#include <weft/weft.hpp>

namespace {

template <class T>
concept shows_its_core = requires(T& t) { t.core(); };

TEST(Internals, nobody_is_shown_what_is_behind_a_runtime_or_a_stage) {
  using stage = decltype(weft::stream::map([](int v) { return v; }));
  using sink = decltype(weft::stream::sink([](int) {}));
  EXPECT_FALSE(shows_its_core<weft::runtime>);
  EXPECT_FALSE(shows_its_core<stage>);
  EXPECT_FALSE(shows_its_core<sink>);
}

TEST(Internals, handles_are_made_by_spawning_only) {
  using head = weft::detail::task_head*;
  using result = weft::detail::result<int>*;
  EXPECT_FALSE((std::constructible_from<weft::task_ref, head>));
  EXPECT_FALSE((std::constructible_from<weft::join_handle<int>, head, result>));
  EXPECT_FALSE((std::constructible_from<weft::reader<int>, weft::chan::core*>));
  EXPECT_FALSE((std::constructible_from<weft::writer<int>, weft::chan::core*>));
  EXPECT_FALSE((std::constructible_from<weft::oneshot_writer<int>, weft::chan::news*>));
  EXPECT_FALSE((std::constructible_from<weft::broadcast_writer<int>, weft::chan::news*>));
  EXPECT_FALSE((std::constructible_from<weft::watch_reader<int>, weft::chan::news*>));
}

}  // namespace
