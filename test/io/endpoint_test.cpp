// Endpoints: what is parsed and printed, what is refused and why, and that the kernel understands them.
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <unordered_set>
#include <vector>

#include <weft/net/endpoint.hpp>

#include "support/usual.hpp"

namespace {

using namespace support::usual;
using weft::net::address_family;
using weft::net::endpoint;

std::string reason_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "no std::invalid_argument";
}

std::errc error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::system_error& e) {
    return static_cast<std::errc>(e.code().default_error_condition().value());
  }
  return {};
}

TEST(Endpoint, what_is_parsed_is_printed_again) {
  for (const char* text : {"127.0.0.1:80", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:80", "[::]:0",
                           "[2001:db8::8:800:200c:417a]:443", "[fe80::1%7]:80", "[::ffff:192.0.2.1]:1",
                           "unix:/run/a.sock", "unix:relative", "unix:@name", "unix:@", "unix:a:b"}) {
    SCOPED_TRACE(text);
    const endpoint e = endpoint::parse(text);
    EXPECT_EQ(e.to_string(), text);
    EXPECT_EQ(endpoint::try_parse(text), e);
    EXPECT_EQ(endpoint(e.data(), e.size()), e);
  }
  EXPECT_EQ(endpoint::parse("[0:0:0:0:0:0:0:1]:00080").to_string(), "[::1]:80");
}

TEST(Endpoint, the_parts_are_those_of_the_text) {
  const endpoint v4 = endpoint::parse("192.0.2.7:8080");
  EXPECT_EQ(v4.family(), address_family::v4);
  EXPECT_EQ(v4.port(), 8080);
  EXPECT_EQ(v4.address(), "192.0.2.7");
  EXPECT_EQ(v4, endpoint::v4({192, 0, 2, 7}, 8080));
  EXPECT_EQ(v4, endpoint::v4("192.0.2.7", 8080));

  const endpoint v6 = endpoint::parse("[fe80::1%3]:9");
  EXPECT_EQ(v6.family(), address_family::v6);
  EXPECT_EQ(v6.port(), 9);
  EXPECT_EQ(v6.scope_id(), 3U);
  EXPECT_EQ(v6.address(), "fe80::1%3");
  EXPECT_EQ(v6, endpoint::v6("fe80::1%3", 9));
  EXPECT_EQ(v6, endpoint::v6({0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 9, 3));

  const endpoint file = endpoint::parse("unix:/run/a.sock");
  EXPECT_EQ(file.family(), address_family::local);
  EXPECT_EQ(file.path(), "/run/a.sock");
  EXPECT_FALSE(file.is_abstract());
  EXPECT_EQ(file.port(), 0);
  EXPECT_EQ(file, endpoint::unix_path("/run/a.sock"));

  const endpoint name = endpoint::parse("unix:@a name");
  EXPECT_EQ(name.path(), "a name");
  EXPECT_TRUE(name.is_abstract());
  EXPECT_EQ(name, endpoint::unix_abstract("a name"));
  EXPECT_NE(name, endpoint::unix_path("a name"));

  const endpoint none;
  EXPECT_EQ(none.family(), address_family::none);
  EXPECT_EQ(none.to_string(), "no address");
  EXPECT_EQ(none.size(), 0U);
}

TEST(Endpoint, the_usual_addresses_have_names) {
  EXPECT_EQ(endpoint::loopback(80), endpoint::parse("127.0.0.1:80"));
  EXPECT_EQ(endpoint::loopback_v6(80), endpoint::parse("[::1]:80"));
  EXPECT_EQ(endpoint::any(80), endpoint::parse("0.0.0.0:80"));
  EXPECT_EQ(endpoint::any_v6(80), endpoint::parse("[::]:80"));
}

TEST(Endpoint, a_scope_may_be_the_name_of_an_interface) {
  const unsigned loopback = if_nametoindex("lo");
  if (loopback == 0) GTEST_SKIP() << "there is no interface lo";
  EXPECT_EQ(endpoint::parse("[fe80::1%lo]:80").scope_id(), loopback);
  EXPECT_EQ(endpoint::parse("[fe80::1%lo]:80"), endpoint::v6("fe80::1%" + std::to_string(loopback), 80));
}

TEST(Endpoint, a_text_that_is_no_endpoint_is_refused_with_the_reason) {
  const struct {
    const char* text;
    const char* reason;
  } cases[] = {
      {"", "there is no port"},
      {"127.0.0.1", "there is no port"},
      {"127.0.0.1:", "the port is not a number"},
      {"127.0.0.1:65536", "the port is not a number from 0 to 65535"},
      {"127.0.0.1:99999999999999999999", "the port is not a number"},
      {"127.0.0.1:-1", "the port is not a number"},
      {"127.0.0.1:+1", "the port is not a number"},
      {"127.0.0.1: 80", "the port is not a number"},
      {"127.0.0.1:80 ", "the port is not a number"},
      {"127.0.0.1:http", "the port is not a number"},
      {"localhost:80", "not an IPv4 address"},
      {":80", "not an IPv4 address"},
      {"127.1:80", "not an IPv4 address"},
      {"256.0.0.1:80", "not an IPv4 address"},
      {"1.2.3.4.5:80", "not an IPv4 address"},
      {"1111.2222.3333.4444.5555:80", "not an IPv4 address"},
      {"::1:80", "in brackets"},
      {"[::1]", "after the closing bracket"},
      {"[::1]80", "after the closing bracket"},
      {"[::1:80", "after the closing bracket"},
      {"[::1]:", "the port is not a number"},
      {"[::1]:65536", "the port is not a number"},
      {"[]:80", "not an IPv6 address"},
      {"[1.2.3.4]:80", "not an IPv6 address"},
      {"[::1::]:80", "not an IPv6 address"},
      {"[%lo]:80", "not an IPv6 address"},
      {"[fe80::1%]:80", "no network interface"},
      {"[fe80::1%0]:80", "no network interface"},
      {"[fe80::1%no such one]:80", "no network interface"},
      {"[fe80::1%a name that no interface can have]:80", "no network interface"},
      {"unix:", "is empty"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    EXPECT_EQ(endpoint::try_parse(c.text), std::nullopt);
    const std::string why = reason_of([&] { (void)endpoint::parse(c.text); });
    EXPECT_NE(why.find(c.reason), std::string::npos) << why;
    EXPECT_NE(why.find(std::string("endpoint::parse(\"") + c.text + "\")"), std::string::npos) << why;
  }
  EXPECT_NE(reason_of([] { (void)endpoint::v4("::1", 80); }).find("endpoint::v4(\"::1\")"), std::string::npos);
  EXPECT_NE(reason_of([] { (void)endpoint::v6("1.2.3.4", 80); }).find("not an IPv6 address"), std::string::npos);
  EXPECT_NE(reason_of([] { (void)endpoint::v4(std::string_view("1.2.3.4\0", 8), 80); }).find("\\x00"),
            std::string::npos);
}

TEST(Endpoint, a_port_out_of_range_is_refused_and_not_cut_off) {
  for (const int port : {-1, 65536, 70000, 1 << 30}) {
    const std::string why = reason_of([&] { (void)endpoint::loopback(port); });
    EXPECT_EQ(why, "weft: port " + std::to_string(port) + " is out of range: 0 to 65535");
  }
  EXPECT_NE(reason_of([] { (void)endpoint::any_v6(UINT64_MAX); }).find("18446744073709551615"), std::string::npos);
  EXPECT_EQ(endpoint::loopback(65535L).port(), 65535);
  EXPECT_EQ(endpoint::loopback(std::uint8_t{7}).port(), 7);
  static_assert(weft::net::port_number(443).value() == 443);
  static_assert(!std::is_constructible_v<weft::net::port_number, bool>);
}

TEST(Endpoint, a_unix_path_that_is_too_long_is_refused_by_its_error) {
  const std::string longest(107, 'x');
  EXPECT_EQ(endpoint::unix_path(longest).path(), longest);
  EXPECT_EQ(endpoint::unix_abstract(longest).path(), longest);
  const std::string longer(108, 'x');
  EXPECT_EQ(error_of([&] { (void)endpoint::unix_path(longer); }), std::errc::filename_too_long);
  EXPECT_EQ(error_of([&] { (void)endpoint::unix_abstract(longer); }), std::errc::filename_too_long);
  EXPECT_EQ(error_of([&] { (void)endpoint::parse("unix:" + longer); }), std::errc::filename_too_long);
  EXPECT_EQ(endpoint::try_parse("unix:" + longer), std::nullopt);
  EXPECT_EQ(endpoint::try_parse("unix:@" + longer), std::nullopt);
  try {
    (void)endpoint::unix_path(longer);
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.what(), "endpoint::unix_path(\"" + longer + "\"): File name too long");
  }
  EXPECT_NE(reason_of([] { (void)endpoint::unix_path(""); }).find("is empty"), std::string::npos);
  EXPECT_NE(reason_of([] { (void)endpoint::unix_path(std::string_view("a\0b", 3)); }).find("zero byte"),
            std::string::npos);
}

TEST(Endpoint, names_of_unix_sockets_are_printed_so_that_they_can_be_read) {
  EXPECT_EQ(endpoint::unix_path("@file").to_string(), "unix:./@file");
  EXPECT_EQ(endpoint::unix_abstract(std::string_view("\0a\n\x7f", 4)).to_string(), "unix:@\\x00a\\x0a\\x7f");
  EXPECT_EQ(endpoint::unix_path("/tmp/ö").to_string(), "unix:/tmp/ö");
}

TEST(Endpoint, an_address_of_the_kernel_is_taken_over) {
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(80);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::memset(v4.sin_zero, 0xff, sizeof v4.sin_zero);  // padding, which an address does not consist of
  EXPECT_EQ(endpoint(reinterpret_cast<const sockaddr*>(&v4), sizeof v4), endpoint::loopback(80));

  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(80);
  v6.sin6_flowinfo = 77;
  v6.sin6_addr = in6addr_loopback;
  EXPECT_EQ(endpoint(reinterpret_cast<const sockaddr*>(&v6), sizeof v6), endpoint::loopback_v6(80));
  unsigned char unaligned[1 + sizeof v6];
  std::memcpy(unaligned + 1, &v6, sizeof v6);
  EXPECT_EQ(endpoint(reinterpret_cast<const sockaddr*>(unaligned + 1), sizeof v6), endpoint::loopback_v6(80));

  sockaddr_un un = {};
  un.sun_family = AF_UNIX;
  const auto* generic = reinterpret_cast<const sockaddr*>(&un);
  EXPECT_EQ(endpoint(generic, sizeof un.sun_family).to_string(), "unix:");  // a socket without a name
  std::strcpy(un.sun_path, "/a");
  EXPECT_EQ(endpoint(generic, sizeof un), endpoint::unix_path("/a"));
  EXPECT_EQ(endpoint(generic, sizeof un.sun_family + 2), endpoint::unix_path("/a"));  // without a zero byte
  std::memset(un.sun_path, 'x', sizeof un.sun_path);
  const endpoint full(generic, sizeof un + 1);  // Linux tells of such a path with its size and one more
  EXPECT_EQ(full.path(), std::string(108, 'x'));
  EXPECT_EQ(full.size(), sizeof un);
}

TEST(Endpoint, an_address_that_is_none_of_these_is_refused) {
  sockaddr_storage other = {};
  const auto* generic = reinterpret_cast<const sockaddr*>(&other);
  other.ss_family = AF_NETLINK;
  EXPECT_EQ(error_of([&] { (void)endpoint(generic, sizeof other); }), std::errc::address_family_not_supported);
  other.ss_family = AF_INET;
  EXPECT_EQ(error_of([&] { (void)endpoint(generic, sizeof(sockaddr_in) - 1); }), std::errc::invalid_argument);
  other.ss_family = AF_INET6;
  EXPECT_EQ(error_of([&] { (void)endpoint(generic, sizeof(sockaddr_in6) - 1); }), std::errc::invalid_argument);
  EXPECT_EQ(error_of([&] { (void)endpoint(generic, 1); }), std::errc::invalid_argument);
  EXPECT_EQ(error_of([&] { (void)endpoint(generic, 0); }), std::errc::invalid_argument);
}

TEST(Endpoint, they_have_an_order_and_a_hash) {
  const std::vector<endpoint> ascending{
      endpoint(),
      endpoint::parse("1.2.3.4:1"),
      endpoint::parse("1.2.3.4:256"),  // as a number, not by its bytes
      endpoint::parse("1.2.3.5:1"),
      endpoint::parse("200.0.0.1:1"),
      endpoint::parse("[::1]:2"),
      endpoint::parse("[fe80::1]:9"),
      endpoint::parse("[fe80::1%1]:1"),
      endpoint::parse("[fe80::1%1]:2"),
      endpoint::parse("[fe80::1%256]:1"),
      endpoint::parse("unix:a"),
      endpoint::parse("unix:ab"),
      endpoint::parse("unix:b"),
      endpoint::parse("unix:@a"),
  };
  for (std::size_t i = 0; i < ascending.size(); ++i)
    for (std::size_t k = 0; k < ascending.size(); ++k) {
      EXPECT_EQ(ascending[i] <=> ascending[k], i <=> k) << ascending[i].to_string() << ", " << ascending[k].to_string();
      EXPECT_EQ(ascending[i] == ascending[k], i == k);
    }
  std::unordered_set<endpoint> set(ascending.begin(), ascending.end());
  set.insert(ascending.begin(), ascending.end());
  EXPECT_EQ(set.size(), ascending.size());
  std::set<std::size_t> hashes;
  for (const endpoint& e : ascending) hashes.insert(std::hash<endpoint>()(e));
  EXPECT_EQ(hashes.size(), ascending.size());
}

// The kernel binds a socket to each of them, and names it in the same way.
TEST(Endpoint, the_kernel_binds_to_them_and_tells_them) {
  const std::string file = testing::TempDir() + "weft_endpoint_" + std::to_string(::getpid());
  std::vector<endpoint> all{endpoint::loopback(0), endpoint::any(0), endpoint::unix_path(file),
                            endpoint::unix_abstract("weft endpoint " + std::to_string(::getpid()))};
  if (const int v6 = ::socket(AF_INET6, SOCK_STREAM, 0); v6 >= 0) {
    ::close(v6);
    if (!support::file_text("/proc/net/if_inet6").empty()) all.push_back(endpoint::loopback_v6(0));
  }
  for (const endpoint& e : all) {
    SCOPED_TRACE(e.to_string());
    const int fd = ::socket(e.data()->sa_family, SOCK_STREAM, 0);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(::bind(fd, e.data(), e.size()), 0) << std::strerror(errno);
    sockaddr_storage name = {};
    socklen_t size = sizeof name;
    ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size), 0);
    const endpoint told(reinterpret_cast<const sockaddr*>(&name), size);
    EXPECT_EQ(told.address(), e.address());
    if (e.family() == address_family::local) {
      EXPECT_EQ(told, e);
    } else {
      EXPECT_NE(told.port(), 0);
    }
    ::close(fd);
  }
  ::unlink(file.c_str());
}

// Mutations of good texts: nothing is read outside of the text (ASan), and what is accepted is printed so that it can be
// parsed again.
TEST(Endpoint, any_text_is_refused_or_parsed) {
  const std::vector<std::string> good{"127.0.0.1:80",     "[::1]:80",   "[fe80::1%7]:80",       "[::ffff:1.2.3.4]:1",
                                      "unix:/run/a.sock", "unix:@name", "255.255.255.255:65535"};
  const std::string bytes = std::string("0123456789abcdefx.:[]%@/- unix") + '\0' + "\xff\n";
  std::mt19937 random(20240611);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::size_t accepted = 0;
  const std::size_t rounds = scaled(200'000);
  for (std::size_t i = 0; i < rounds; ++i) {
    std::string text = good[below(good.size())];
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
      const std::size_t at = below(text.size() + 1);
      switch (below(4)) {
        case 0: text.insert(at, 1, bytes[below(bytes.size())]); break;
        case 1: text.erase(at, 1); break;
        case 2: text.insert(at, good[below(good.size())]); break;
        default:
          if (at < text.size()) text[at] = bytes[below(bytes.size())];
      }
    }
    const std::vector<char> exact(text.begin(), text.end());  // without a zero byte behind it
    const auto e = endpoint::try_parse({exact.data(), exact.size()});
    if (!e) continue;
    ++accepted;
    const std::string printed = e->to_string();
    if (printed.find("\\x") != std::string::npos) continue;
    ASSERT_EQ(endpoint::try_parse(printed), e) << text;
  }
  EXPECT_GT(accepted, rounds / 100);
  EXPECT_LT(accepted, rounds);
}

}  // namespace
