// Connecting to a host by its name: which address wins, what a failure says, and callers that leave before.
#include "io/connecting.hpp"

#include <thread>

namespace {

using namespace connect_test;

// Over the real resolver, in a runtime that may grow while a look-up blocks.
void in_growing_runtime(auto body) {
  const support::watchdog guard(110s);
  watched_runtime rt(weft::runtime_options{.workers = 2});
  rt->run(body);
}

void expect_open(const io::fd_handle& h, const endpoint& to) {
  ASSERT_TRUE(h.is_open());
  EXPECT_EQ(io::remote_endpoint(h.record()), to);
}

// ---- who wins --------------------------------------------------------------------------------------------------------

// req: IO-10
TEST(Connect, the_address_after_one_that_refuses_is_tried_at_once) {
  const fake_names names;
  names.know("host.test", {"127.0.0.2", "127.0.0.1"});
  with_sockets([&] {
    const lan here;
    const io::fd_handle h = reach(names.kernel(), "host.test", here.port(), {.attempt_delay = for_ever});
    expect_open(h, here.listener().local_endpoint());
    EXPECT_EQ(here.listener().accept().remote_endpoint(), io::local_endpoint(h.record()));
  });
}

// req: IO-10
TEST(Connect, a_black_hole_does_not_hold_up_the_address_that_answers) {
  const fake_names names;
  names.know("host.test", {"127.0.0.3", "127.0.0.2", "127.0.0.1"});
  with_sockets([&] {
    const lan here;
    const black_hole hole(here.port());
    std::error_code why = std::make_error_code(std::errc::io_error);
    const io::fd_handle h = reach(names.kernel(), "host.test", here.port(), {.attempt_delay = 1ms}, why);
    EXPECT_FALSE(why);
    expect_open(h, here.listener().local_endpoint());
  });
}

TEST(Connect, all_addresses_may_be_tried_at_the_same_time) {
  const fake_names names;
  names.know("host.test", {"127.0.0.3", "127.0.0.2", "127.0.0.1", "127.0.0.4"});
  with_sockets([&] {
    const lan here;
    const black_hole hole(here.port());
    expect_open(reach(names.kernel(), "host.test", here.port(), {.attempt_delay = 0ms}),
                here.listener().local_endpoint());
    expect_open(reach(names.kernel(), "host.test", here.port(), {.attempt_delay = -1h}),
                here.listener().local_endpoint());
  });
}

// req: IO-10
TEST(Connect, the_next_address_is_not_tried_before_its_time) {
  const fake_names names;
  names.know("host.test", {"127.0.0.3", "127.0.0.1"});
  with_sockets([&] {
    const lan here;
    const black_hole hole(here.port());
    std::error_code why;
    EXPECT_FALSE(reach(names.kernel(), "host.test", here.port(), {.attempt_delay = 1h, .timeout = 5ms}, why).is_open());
    EXPECT_EQ(why, std::errc::timed_out);
    EXPECT_FALSE(here.listener().try_accept().has_value()) << "the second address was tried";
  });
}

TEST(Connect, the_stream_works_as_any_other) {
  with_sockets([] {
    const lan here;
    const auto client = net::tcp_stream::connect("127.0.0.1", here.port());
    const auto server = here.listener().accept();
    client.write_all("hello");
    char room[8];
    EXPECT_EQ(server.read_some(room), 5u);
    server.write_all("x");
    EXPECT_EQ(client.read_some(room), 1u);
    std::error_code why;
    EXPECT_EQ(client.read_some_for(1ms, room, why), 0u);
    EXPECT_EQ(why, std::errc::timed_out);
  });
}

TEST(Connect, ipv6_and_localhost_work) {
  const std::size_t before = support::open_descriptors();
  in_growing_runtime([] {
    std::error_code why;
    const net::tcp_listener six(endpoint::loopback_v6(0), {}, why);
    if (!why) {
      EXPECT_EQ(net::tcp_stream::connect("::1", six.local_endpoint().port()).remote_endpoint(), six.local_endpoint());
    }
    if (support::file_text("/etc/hosts").find("localhost") == std::string::npos) return;
    const lan here;  // whether localhost is ::1 as well or not: 127.0.0.1 answers
    const auto s = net::tcp_stream::connect("localhost", std::to_string(here.port()), why);
    EXPECT_FALSE(why) << why.message();
    EXPECT_EQ(s.remote_endpoint(), here.listener().local_endpoint());
  });
  EXPECT_EQ(support::open_descriptors(), before);
}

// ---- failures --------------------------------------------------------------------------------------------------------

// req: IO-10
TEST(Connect, when_all_addresses_refuse_the_message_lists_them) {
  const fake_names names;
  names.know("one.test", {"127.0.0.2"});
  names.know("pair.test", {"127.0.0.2", "127.0.0.4"});
  with_sockets([&] {
    const lan here;
    const std::string port = std::to_string(here.port());
    std::error_code why;
    EXPECT_FALSE(reach(names.kernel(), "pair.test", port, {.attempt_delay = for_ever}, why).is_open());
    EXPECT_EQ(why, std::errc::connection_refused);
    EXPECT_EQ(message_of([&] { (void)reach(names.kernel(), "pair.test", here.port()); }),
              "connect to \"pair.test\" port " + port + " (" + here.at("127.0.0.2") + ": Connection refused; " +
                  here.at("127.0.0.4") + ": Connection refused): Connection refused");
    EXPECT_EQ(message_of([&] { (void)reach(names.kernel(), "one.test", here.port()); }),
              "connect to \"one.test\" port " + port + " at " + here.at("127.0.0.2") + ": Connection refused");
  });
}

// req: IO-10 IO-13
TEST(Connect, a_name_that_is_not_there_is_told_with_the_category_of_names) {
  const fake_names names;
  with_sockets([&] {
    std::error_code why;
    EXPECT_FALSE(reach(names.kernel(), "nx.test", 80, {}, why).is_open());
    EXPECT_EQ(why, net::resolve_errc::not_found);
    EXPECT_EQ(message_of([&] { (void)reach(names.kernel(), "nx.test", 80); }),
              "connect to \"nx.test\" port 80: resolve: Name or service not known");
  });
}

TEST(Connect, a_host_or_port_that_cannot_be_is_an_error_in_both_forms) {
  const fake_names names;
  with_sockets([&] {
    const auto error_of_form = [&](std::string_view host, const net::service& port) {
      std::error_code why;
      EXPECT_FALSE(reach(names.kernel(), host, port, {}, why).is_open());
      EXPECT_EQ(why, support::error_of([&] { (void)reach(names.kernel(), host, port); }));
      return why;
    };
    EXPECT_EQ(error_of_form("", 80), std::errc::invalid_argument);
    EXPECT_EQ(error_of_form(std::string_view("a\0b", 3), 80), std::errc::invalid_argument);
    EXPECT_EQ(error_of_form(std::string(5000, 'x'), 80), net::resolve_errc::not_found);
    EXPECT_EQ(error_of_form("127.0.0.1", ""), net::resolve_errc::unknown_service);
    EXPECT_EQ(error_of_form("127.0.0.1", "65536"), net::resolve_errc::unknown_service);
    EXPECT_EQ(message_of([&] { (void)reach(names.kernel(), "", 80); }), "connect to \"\" port 80: Invalid argument");
    EXPECT_THROW((void)reach(names.kernel(), "127.0.0.1", 65536), std::invalid_argument);
    EXPECT_THROW((void)reach(names.kernel(), "127.0.0.1", -1), std::invalid_argument);
  });
  in_growing_runtime([] {
    std::error_code why;
    EXPECT_FALSE(net::tcp_stream::connect("127.0.0.1", "no-such-service", why).is_open());
    EXPECT_EQ(why.category(), net::resolve_category()) << why.message();
  });
}

// ---- callers that leave ----------------------------------------------------------------------------------------------

// req: IO-10
TEST(Connect, the_time_limit_ends_a_connect_and_the_message_says_how_far_it_was) {
  const fake_names names;
  names.know("host.test", {"127.0.0.2", "127.0.0.3", "127.0.0.4"});
  with_sockets([&] {
    const lan here;
    const black_hole hole(here.port());
    const connect_options o{.attempt_delay = for_ever};
    EXPECT_EQ(message_of([&] {
                (void)io::connect_to_host(names.kernel(), "host.test", here.port(), o, {.until = clock::now() + 300ms},
                                          nullptr);
              }),
              "connect to \"host.test\" port " + std::to_string(here.port()) + " (" + here.at("127.0.0.2") +
                  ": Connection refused; " + here.at("127.0.0.3") + ": no answer; " + here.at("127.0.0.4") +
                  ": not tried): Connection timed out");
    // A scope's deadline is a cancellation.
    EXPECT_FALSE(weft::with_timeout(5ms, [&] {
                   return reach(names.kernel(), "host.test", here.port(), o).is_open();
                 }).has_value());
  });
}

TEST(Connect, a_time_that_is_over_tries_nothing) {
  with_sockets([] {
    const lan here;
    std::error_code why;
    EXPECT_FALSE(net::tcp_stream::connect_for(0s, "127.0.0.1", here.port(), {}, why).is_open());
    EXPECT_EQ(why, std::errc::timed_out);
    EXPECT_EQ(
        support::error_of([&] { (void)net::tcp_stream::connect_until(clock::now() - 1h, "127.0.0.1", here.port()); }),
        std::errc::timed_out);
    EXPECT_EQ(support::error_of([&] { (void)net::tcp_stream::connect("127.0.0.1", here.port(), {.timeout = 0s}); }),
              std::errc::timed_out);
    EXPECT_TRUE(net::tcp_stream::connect_for(1h, "127.0.0.1", here.port()).is_open());
    EXPECT_TRUE(net::tcp_stream::connect_until(clock::now() + 1h, "127.0.0.1", here.port(), {}, why).is_open());
    EXPECT_FALSE(why);
  });
}

// How often the kernel was asked to connect.
base::atomic<int> connects{0};
io::kernel_calls counting(const fake_names& names) {
  io::kernel_calls k = names.kernel();
  connects = 0;
  k.connect = [](int fd, const sockaddr* to, socklen_t size) noexcept {
    const int result = ::connect(fd, to, size);
    const int number = errno;
    ++connects;
    errno = number;
    return result;
  };
  return k;
}

// req: IO-2 IO-10
TEST(Connect, cancellation_during_a_connect_ends_it_at_once_in_both_forms) {
  const support::watchdog guard(110s);
  const fake_names names;
  names.know("host.test", {"127.0.0.3", "127.0.0.2"});
  const std::size_t before = support::open_descriptors();
  at_worker_counts([&](std::size_t workers) {
    const lan here;
    const black_hole hole(here.port());
    for (const bool with_code : {false, true}) {
      const io::kernel_calls kernel = counting(names);
      watched_runtime rt(workers);
      named_task caller(*rt, [&] {
        std::error_code why;
        (void)io::connect_to_host(kernel, "host.test", here.port(), {.attempt_delay = for_ever}, io::limit(),
                                  with_code ? &why : nullptr);
      });
      until([&] { return connects.load() != 0; });
      caller.until_parked();
      caller.cancel();
      EXPECT_TRUE(caller.join_cancelled());
    }
  });
  EXPECT_EQ(support::open_descriptors(), before);
}

// req: IO-10
TEST(Connect, cancellation_and_time_limit_during_the_look_up_end_it_at_once) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is, and a look-up blocks it";
  const support::watchdog guard(110s);
  const fake_names names;
  const std::size_t before = support::open_descriptors();
  names.close();
  {
    watched_runtime rt(weft::runtime_options{.workers = 2});
    named_task caller(*rt, [&] { (void)reach(names.kernel(), "1.test", 80); });
    until([&] { return names.inside() == 1; });
    caller.until_parked();
    caller.cancel();
    EXPECT_TRUE(caller.join_cancelled());
    rt->run([&] {
      std::error_code why;
      EXPECT_FALSE(reach(names.kernel(), "2.test", 80, {.timeout = 5ms}, why).is_open());
      EXPECT_EQ(why, std::errc::timed_out);
      EXPECT_EQ(message_of([&] { (void)reach(names.kernel(), "3.test", 80, {.timeout = 5ms}); }),
                "connect to \"3.test\" port 80: resolve: Connection timed out");
    });
    EXPECT_GE(names.inside(), 1);
    names.open();
  }
  EXPECT_EQ(support::open_descriptors(), before);
}

TEST(Connect, is_always_a_cancellation_point) {
  with_sockets([] {
    const lan here;
    for (const char* host : {"127.0.0.1", ""}) {
      auto caller = weft::spawn([&] {
        weft::this_task::ref().cancel();
        std::error_code why;
        (void)net::tcp_stream::connect(host, here.port(), why);
      });
      EXPECT_THROW(caller.join(), weft::task_cancelled);
    }
    EXPECT_FALSE(here.listener().try_accept().has_value());
  });
}

// ---- outside threads -------------------------------------------------------------------------------------------------

TEST(Connect, an_outside_thread_races_as_a_task_does) {
  const support::watchdog guard(60s);
  const fake_names names;
  names.know("good.test", {"127.0.0.3", "127.0.0.2", "127.0.0.1"});
  names.know("bad.test", {"127.0.0.2", "127.0.0.3"});
  const std::size_t before = support::open_descriptors();
  {
    const lan here;
    const black_hole hole(here.port());
    expect_open(reach(names.kernel(), "good.test", here.port(), {.attempt_delay = 1ms}),
                here.listener().local_endpoint());
    std::error_code why;
    EXPECT_FALSE(reach(names.kernel(), "bad.test", here.port(), {.timeout = 20ms}, why).is_open());
    EXPECT_EQ(why, std::errc::timed_out);
    EXPECT_FALSE(reach(names.kernel(), "127.0.0.2", here.port(), {}, why).is_open());
    EXPECT_EQ(why, std::errc::connection_refused);
  }
  EXPECT_EQ(support::open_descriptors(), before);
}

}  // namespace
