// Look-ups of names: what comes out, how many run at once, and callers that leave before the answer.
#include "io/resolve.hpp"

#include <netdb.h>

#include <algorithm>
#include <optional>
#include <source_location>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "io/fake_names.hpp"
#include "sync/sync.hpp"

namespace {

using namespace support::usual;
using io_test::fake_names;
using sync_test::clock;
using sync_test::named_task;
using weft::net::endpoint;
using weft::net::resolve_errc;
using weft::net::resolve_options;
using endpoints = std::vector<endpoint>;

constexpr auto no_growth = "without stealing the pool stays as it is, and a look-up blocks a worker";

endpoints ask(const fake_names& names, std::string_view host, const weft::net::service& s, std::error_code& error,
              const resolve_options& options = {}) {
  return weft::io::resolve(names.kernel(), host, s, options, error, std::source_location::current());
}
endpoints ask(const fake_names& names, std::string_view host, const weft::net::service& s,
              const resolve_options& options = {}) {
  return weft::io::resolve(names.kernel(), host, s, options, std::source_location::current());
}
endpoint numbered(int n) {
  return endpoint::v4({10, 0, static_cast<std::uint8_t>(n / 256), static_cast<std::uint8_t>(n % 256)}, 80);
}

// A pool that grows while its workers are in look-ups.
class growing : public watched_runtime {
 public:
  explicit growing(std::size_t workers) : watched_runtime(weft::runtime_options{.workers = workers}) {}
};

// ---- answers ---------------------------------------------------------------------------------------------------------

// req: IO-10
TEST(Resolve, a_name_has_its_addresses_in_the_order_of_the_system_each_once) {
  const fake_names names;
  const endpoints both{endpoint::parse("[2001:db8::1]:443"), endpoint::parse("192.0.2.1:443")};
  EXPECT_EQ(ask(names, "two.test", 443), both);
  EXPECT_EQ(ask(names, "two.test", "443"), both);
  at_worker_counts_in_a_task([&] { EXPECT_EQ(ask(names, "two.test", 443), both); });
  EXPECT_EQ(names.lists_out(), 0);
}

TEST(Resolve, a_numeric_host_is_answered_on_the_spot) {
  const fake_names names;
  names.close();
  watched_runtime rt(1);
  rt->run([&] {
    const auto spawned = rt->statistics().spawned;
    EXPECT_EQ(ask(names, "127.0.0.1", 80), endpoints{endpoint::loopback(80)});
    EXPECT_EQ(ask(names, "::1", "80"), endpoints{endpoint::loopback_v6(80)});
    EXPECT_EQ(ask(names, "fe80::1%1", 80), endpoints{endpoint::v6("fe80::1%1", 80)});
    EXPECT_EQ(ask(names, "", 80, {.family = weft::net::address_family::v4}), endpoints{endpoint::loopback(80)});
    EXPECT_EQ(ask(names, "", 80, {.family = weft::net::address_family::v4, .passive = true}),
              endpoints{endpoint::any(80)});
    EXPECT_EQ(rt->statistics().spawned, spawned);
  });
  EXPECT_EQ(names.asked(), 0);
  EXPECT_EQ(names.asked_numeric(), 5);
  EXPECT_EQ(names.lists_out(), 0);
}

// /etc/hosts answers; no name server is needed.
TEST(Resolve, the_real_resolver_knows_this_machine) {
  EXPECT_EQ(weft::net::resolve("127.0.0.1", 80), endpoints{endpoint::loopback(80)});
  if (support::file_text("/etc/hosts").find("localhost") == std::string::npos) GTEST_SKIP() << "no localhost here";
  support::watchdog guard(60s);
  growing rt(2);
  rt->run([] {
    std::error_code error;
    const endpoints found = weft::net::resolve("localhost", 80, error);
    EXPECT_FALSE(error) << error.message();
    const auto is_loopback = [](const endpoint& e) {
      return e == endpoint::loopback(80) || e == endpoint::loopback_v6(80);
    };
    EXPECT_TRUE(std::ranges::any_of(found, is_loopback));
    EXPECT_EQ(weft::net::resolve("localhost", 80, resolve_options{}, error), found);
  });
}

// ---- errors ----------------------------------------------------------------------------------------------------------

// req: IO-10 IO-13
TEST(Resolve, an_error_names_the_host_and_has_its_category_in_both_forms) {
  const fake_names names;
  const struct {
    const char* host;
    std::error_code error;
  } cases[] = {
      {"nx.test", resolve_errc::not_found},
      {"again.test", resolve_errc::try_again},
      {"fail.test", resolve_errc::failed},
      {"empty.test", resolve_errc::no_address},
      {"broken.test", std::error_code(EIO, std::system_category())},
  };
  const auto check = [&] {
    for (const auto& c : cases) {
      std::error_code error;
      EXPECT_TRUE(ask(names, c.host, 80, error).empty());
      EXPECT_EQ(error, c.error) << c.host;
      try {
        (void)ask(names, c.host, 80);
        ADD_FAILURE() << "no exception for " << c.host;
      } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), c.error) << c.host;
        EXPECT_EQ(e.what(), std::string("resolve \"") + c.host + "\": " + c.error.message());
      }
    }
    std::error_code error = resolve_errc::not_found;
    EXPECT_FALSE(ask(names, "1.test", 80, error).empty());
    EXPECT_FALSE(error);
  };
  check();
  at_worker_counts_in_a_task(check);
  EXPECT_EQ(names.lists_out(), 0);
}

TEST(Resolve, the_category_speaks_as_libc_does) {
  const std::error_code error = resolve_errc::not_found;
  EXPECT_EQ(error.value(), EAI_NONAME);
  EXPECT_EQ(error.message(), "Name or service not known");
  EXPECT_STREQ(error.category().name(), "weft.resolve");
  EXPECT_EQ(error, resolve_errc::not_found);
  EXPECT_EQ(make_error_code(resolve_errc::try_again), std::errc::resource_unavailable_try_again);
  EXPECT_EQ(make_error_code(resolve_errc::no_address_of_family), std::errc::address_family_not_supported);
  EXPECT_EQ(std::error_code(EAI_MEMORY, weft::net::resolve_category()), std::errc::not_enough_memory);
}

TEST(Resolve, what_cannot_be_a_name_is_refused_without_a_look_up) {
  const fake_names names;
  const auto refusal = [&](std::string_view host, const weft::net::service& s, const resolve_options& o = {}) {
    std::error_code error;
    EXPECT_TRUE(ask(names, host, s, error, o).empty());
    return error;
  };
  EXPECT_EQ(refusal(std::string_view("a\0b", 3), 80), std::errc::invalid_argument);
  EXPECT_EQ(refusal("1.test", std::string_view("a\0b", 3)), std::errc::invalid_argument);
  EXPECT_EQ(refusal(std::string(1 << 20, '1') + "%1", 80), resolve_errc::not_found);
  EXPECT_EQ(refusal("1.test", std::string(1 << 20, 'x')), resolve_errc::unknown_service);
  EXPECT_EQ(refusal("1.test", "65536"), resolve_errc::unknown_service);
  EXPECT_EQ(refusal("127.0.0.1", "65537"), resolve_errc::unknown_service);
  EXPECT_EQ(refusal("127.0.0.1", 80, {.family = weft::net::address_family::local}), resolve_errc::no_address_of_family);
  EXPECT_EQ(refusal("127.0.0.1", 80, {.family = weft::net::address_family::v6}).category(),
            weft::net::resolve_category());
  EXPECT_EQ(names.asked(), 0);
  EXPECT_THROW((void)ask(names, "1.test", 65536), std::invalid_argument);
  EXPECT_THROW((void)ask(names, "1.test", -1), std::invalid_argument);
  try {
    (void)ask(names, "1.test", "65536");
    ADD_FAILURE();
  } catch (const std::system_error& e) {
    EXPECT_EQ(std::string(e.what()).find("resolve \"1.test\""), 0U) << e.what();
  }
  try {
    (void)ask(names, "nx.test", "no\nservice");
    ADD_FAILURE();
  } catch (const std::system_error& e) {
    EXPECT_STREQ(e.what(), "resolve \"nx.test\", service \"no\\x0aservice\": Name or service not known");
  }
}

// ---- many ------------------------------------------------------------------------------------------------------------

// req: IO-10
TEST(Resolve, a_thousand_look_ups_leave_room_for_other_blocking_work) {
  if (weft::sched::force_migration) GTEST_SKIP() << no_growth;
  support::watchdog guard(110s);
  const fake_names names;
  names.close();
  constexpr int many = 1000;
  const int at_once = static_cast<int>(weft::sched::scheduler_options().lookup_tasks);
  growing rt(2);
  rt->run([&] {
    std::vector<weft::join_handle<endpoints>> all;
    for (int i = 0; i < many; ++i)
      all.push_back(weft::spawn([&, i] { return ask(names, std::to_string(i) + ".test", 80); }));
    until([&] { return names.inside() == at_once; });
    std::vector<weft::join_handle<void>> others;
    base::atomic<int> done{0};
    for (int i = 0; i < 100; ++i) others.push_back(weft::spawn([&] { weft::blocking([&] { done.fetch_add(1); }); }));
    for (auto& o : others) o.join();
    EXPECT_EQ(done.load(), 100);
    EXPECT_EQ(names.inside(), at_once);
    names.open();
    for (int i = 0; i < many; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].join(), endpoints{numbered(i)});
  });
  EXPECT_EQ(names.asked(), many);
  EXPECT_EQ(names.most_inside(), at_once);
  EXPECT_EQ(names.lists_out(), 0);
}

// ---- callers that leave ----------------------------------------------------------------------------------------------

// req: IO-10
TEST(Resolve, a_cancelled_call_returns_while_the_look_up_runs) {
  if (weft::sched::force_migration) GTEST_SKIP() << no_growth;
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    const fake_names names;
    names.close();
    {
      growing rt(workers);
      bool with_error_code = false;
      named_task asker(*rt, [&] {
        std::error_code error;
        with_error_code = throws_cancelled([&] { (void)ask(names, std::string("1.te") + "st", 80, error); });
        (void)ask(names, "2.test", 80);
      });
      until([&] { return names.inside() == 1; });
      asker.until_parked();
      asker.cancel();
      EXPECT_TRUE(asker.join_cancelled());
      EXPECT_TRUE(with_error_code);
      EXPECT_EQ(names.inside(), 1);
      names.open();
    }
    EXPECT_EQ(names.asked(), 1);
    EXPECT_EQ(names.inside(), 0);  // the end of the runtime has waited for it
    EXPECT_EQ(names.lists_out(), 0);
  });
}

// req: IO-10
TEST(Resolve, a_call_whose_time_is_up_returns_while_the_look_up_runs) {
  if (weft::sched::force_migration) GTEST_SKIP() << no_growth;
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    const fake_names names;
    names.close();
    {
      growing rt(workers);
      rt->run([&] {
        std::error_code error;
        EXPECT_TRUE(ask(names, "1.test", 80, error, {.until = clock::now() + 20ms}).empty());
        EXPECT_EQ(error, std::errc::timed_out);
        const auto found = weft::with_timeout(20ms, [&] { return ask(names, "2.test", 80); });
        EXPECT_FALSE(found.has_value());
        EXPECT_EQ(names.inside(), 2);
        names.open();
        EXPECT_EQ(ask(names, "3.test", 80, {.until = clock::now() + 1h}), endpoints{numbered(3)});
      });
    }
    EXPECT_EQ(names.asked(), 3);
    EXPECT_EQ(names.lists_out(), 0);
  });
}

TEST(Resolve, a_look_up_is_not_begun_if_nobody_waits_for_it_any_more) {
  if (weft::sched::force_migration) GTEST_SKIP() << no_growth;
  support::watchdog guard(60s);
  const fake_names names;
  names.close();
  const int at_once = static_cast<int>(weft::sched::scheduler_options().lookup_tasks);
  {
    growing rt(2);
    std::vector<weft::join_handle<endpoints>> all;
    for (int i = 0; i < at_once; ++i) all.push_back(rt->spawn([&] { return ask(names, "1.test", 80); }));
    until([&] { return names.inside() == at_once; });
    named_task late(*rt, [&] { (void)ask(names, "nx.test", 80); });
    late.until_parked();
    late.cancel();
    EXPECT_TRUE(late.join_cancelled());
    names.open();
    for (auto& a : all) EXPECT_EQ(a.join(), endpoints{numbered(1)});
  }
  EXPECT_EQ(names.asked(), at_once);
  EXPECT_EQ(names.lists_out(), 0);
}

TEST(Resolve, is_always_a_cancellation_point) {
  const fake_names names;
  at_worker_counts_in_a_task([&] {
    auto asker = weft::spawn([&] {
      weft::this_task::ref().cancel();
      (void)ask(names, "127.0.0.1", 80);
    });
    EXPECT_THROW(asker.join(), weft::task_cancelled);
  });
  EXPECT_EQ(names.asked_numeric(), 0);
}

TEST(Resolve, a_shielded_call_waits_for_its_answer) {
  if (weft::sched::force_migration) GTEST_SKIP() << no_growth;
  support::watchdog guard(60s);
  const fake_names names;
  names.close();
  growing rt(2);
  endpoints found;
  named_task asker(*rt, [&] {
    found = weft::this_task::shielded([&] { return ask(names, "7.test", 80); });
    weft::this_task::check();
  });
  until([&] { return names.inside() == 1; });
  asker.until_parked();
  asker.cancel();
  names.open();
  EXPECT_TRUE(asker.join_cancelled());
  EXPECT_EQ(found, endpoints{numbered(7)});
}

TEST(Resolve, an_outside_thread_blocks_until_the_answer_or_its_time) {
  support::watchdog guard(60s);
  const fake_names names;
  EXPECT_EQ(ask(names, "5.test", 80), endpoints{numbered(5)});
  EXPECT_EQ(ask(names, "6.test", 80, {.until = clock::now() + 1h}), endpoints{numbered(6)});
  names.close();
  std::error_code error;
  EXPECT_TRUE(ask(names, "7.test", 80, error, {.until = clock::now() + 20ms}).empty());
  EXPECT_EQ(error, std::errc::timed_out);
  EXPECT_LE(names.inside(), 1);
  names.open();
  until([&] { return names.asked() == 3 && names.inside() == 0 && names.lists_out() == 0; });
}

// Callers that come, are cancelled at various moments, and go: every list is freed, and nobody gets the answer of another.
TEST(Resolve, callers_that_come_and_go_lose_nothing) {
  support::watchdog guard(110s);
  const fake_names names;
  at_worker_counts([&](std::size_t workers) {
    growing rt(workers);
    rt->run([&] {
      for (int round = 0; round < static_cast<int>(scaled(300)); ++round) {
        std::vector<weft::join_handle<endpoints>> all;
        for (int i = 0; i < 8; ++i)
          all.push_back(weft::spawn([&, i] { return ask(names, std::to_string(i) + ".test", 80); }));
        for (int i = 0; i < round % 5; ++i) weft::yield();
        for (std::size_t i = 0; i < all.size(); i += 2) all[i].cancel();
        for (std::size_t i = 0; i < all.size(); ++i) {
          try {
            EXPECT_EQ(all[i].join(), endpoints{numbered(static_cast<int>(i))});
          } catch (const weft::task_cancelled&) {
            EXPECT_EQ(i % 2, 0U);
          }
        }
      }
    });
  });
  EXPECT_EQ(names.lists_out(), 0);
  EXPECT_EQ(names.inside(), 0);
}

}  // namespace
