// Happy eyeballs: in which order and when the addresses of a host are tried.
#include "io/connect_order.hpp"

#include <string>
#include <system_error>
#include <vector>

#include "support/usual.hpp"

namespace {

using namespace support::usual;
using weft::io::connect_attempts;
using weft::net::endpoint;

std::vector<std::string> order_of(const std::vector<const char*>& resolved) {
  std::vector<endpoint> given;
  for (const char* text : resolved) given.push_back(endpoint::parse(text));
  std::vector<std::string> order;
  for (const endpoint& e : weft::io::connect_order(given)) order.push_back(e.to_string());
  return order;
}
using texts = std::vector<std::string>;

TEST(ConnectOrder, the_families_take_turns_and_the_first_of_the_resolver_begins) {
  EXPECT_EQ(order_of({"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::3]:1", "10.0.0.1:1", "10.0.0.2:1"}),
            (texts{"[2001:db8::1]:1", "10.0.0.1:1", "[2001:db8::2]:1", "10.0.0.2:1", "[2001:db8::3]:1"}));
  EXPECT_EQ(order_of({"10.0.0.1:1", "10.0.0.2:1", "[2001:db8::1]:1"}),
            (texts{"10.0.0.1:1", "[2001:db8::1]:1", "10.0.0.2:1"}));
}

TEST(ConnectOrder, one_family_stays_as_it_is) {
  EXPECT_EQ(order_of({"10.0.0.2:1", "10.0.0.1:1", "10.0.0.3:1"}), (texts{"10.0.0.2:1", "10.0.0.1:1", "10.0.0.3:1"}));
  EXPECT_EQ(order_of({"[::1]:1"}), (texts{"[::1]:1"}));
  EXPECT_EQ(order_of({}), texts{});
}

TEST(ConnectOrder, what_is_no_internet_address_comes_last) {
  EXPECT_EQ(order_of({"unix:@a", "10.0.0.1:1", "10.0.0.2:1", "[::1]:1"}),
            (texts{"10.0.0.1:1", "[::1]:1", "10.0.0.2:1", "unix:@a"}));
  EXPECT_EQ(order_of({"unix:@a"}), (texts{"unix:@a"}));
}

constexpr connect_attempts::clock::time_point start{1h};
const std::error_code refused = std::make_error_code(std::errc::connection_refused);
const std::error_code unreachable = std::make_error_code(std::errc::network_unreachable);

TEST(ConnectAttempts, an_attempt_begins_every_quarter_of_a_second) {
  connect_attempts a(3);
  EXPECT_EQ(a.next(start), 0U);
  EXPECT_EQ(a.next(start), std::nullopt);
  EXPECT_EQ(a.next_time(), start + 250ms);
  EXPECT_EQ(a.next(start + 249ms), std::nullopt);
  EXPECT_EQ(a.next(start + 250ms), 1U);
  EXPECT_EQ(a.next(start + 400ms), std::nullopt);
  EXPECT_EQ(a.next(start + 700ms), 2U);  // late: the next is counted from here
  EXPECT_EQ(a.running(), 3U);
  EXPECT_EQ(a.next_time(), connect_attempts::clock::time_point::max());
  EXPECT_EQ(a.next(start + 1h), std::nullopt);
  EXPECT_FALSE(a.all_failed());
}

TEST(ConnectAttempts, without_an_end_of_the_delay_only_a_failure_lets_the_next_begin) {
  connect_attempts a(2, connect_attempts::clock::duration::max());
  EXPECT_EQ(a.next(start), 0U);
  EXPECT_EQ(a.next_time(), connect_attempts::clock::time_point::max());
  EXPECT_EQ(a.next(start + 24h), std::nullopt);
  a.failed(0, refused);
  EXPECT_EQ(a.next(start + 24h), 1U);
}

TEST(ConnectAttempts, a_failure_lets_the_next_begin_at_once) {
  connect_attempts a(3);
  EXPECT_EQ(a.next(start), 0U);
  a.failed(0, refused);
  EXPECT_LE(a.next_time(), start + 1ms);
  EXPECT_EQ(a.next(start + 1ms), 1U);
  EXPECT_EQ(a.next(start + 2ms), std::nullopt);  // this one has its quarter of a second
  EXPECT_EQ(a.next_time(), start + 251ms);
  EXPECT_EQ(a.running(), 1U);
}

TEST(ConnectAttempts, when_all_have_failed_the_error_is_that_of_the_first_choice) {
  connect_attempts a(3, 10ms);
  EXPECT_EQ(a.next(start), 0U);
  EXPECT_EQ(a.next(start + 10ms), 1U);
  a.failed(1, unreachable);
  EXPECT_EQ(a.error(), unreachable);
  EXPECT_EQ(a.next(start + 11ms), 2U);
  a.failed(0, refused);
  EXPECT_FALSE(a.all_failed());
  a.failed(2, unreachable);
  EXPECT_TRUE(a.all_failed());
  EXPECT_EQ(a.error(), refused);
  EXPECT_EQ(a.running(), 0U);
  EXPECT_EQ(a.next(start + 1h), std::nullopt);
}

TEST(ConnectAttempts, without_an_address_there_is_nothing_to_wait_for) {
  connect_attempts a(0);
  EXPECT_EQ(a.next(start), std::nullopt);
  EXPECT_TRUE(a.all_failed());
  EXPECT_FALSE(a.error());
}

}  // namespace
