#include "io/resolve.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "io/endpoint_text.hpp"
#include "sched/scheduler.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/oneshot.hpp>
#include <weft/runtime.hpp>
#include <weft/select.hpp>
#include <weft/this_task.hpp>
#include <weft/timer.hpp>

namespace weft::inline v1::io {
namespace {

using net::endpoint;
using clock = std::chrono::steady_clock;

// Plug-ins of libc look names up (files, DNS, LDAP and others), and expect the stack of a thread. Only pages that are
// touched take memory.
constexpr std::size_t lookup_stack = std::size_t{1} << 20;

struct lookup_answer {
  std::vector<endpoint> found;
  std::error_code error;
};

// True for an empty text as well, which means port 0.
bool is_number(std::string_view service) noexcept {
  return std::ranges::all_of(service, [](char c) { return c >= '0' && c <= '9'; });
}

// What getaddrinfo is asked. It belongs to the look-up (io.N1).
class lookup {
 public:
  lookup(const kernel_calls& kernel, std::string_view host, std::string_view service, const net::resolve_options& o)
      : kernel_(kernel),
        host_(host),
        service_(service),
        family_(o.family == net::address_family::v4   ? AF_INET
                : o.family == net::address_family::v6 ? AF_INET6
                                                      : AF_UNSPEC),
        type_(o.datagram ? SOCK_DGRAM : SOCK_STREAM),
        flags_(o.passive ? AI_PASSIVE : 0),
        configured_only_(o.configured_only) {}

  // Needs no name server and no file. The error is not_found if the host is a name.
  [[nodiscard]] lookup_answer ask_numeric() const noexcept { return ask(flags_ | AI_NUMERICHOST | AI_NUMERICSERV); }
  // Blocks.
  [[nodiscard]] lookup_answer ask_anybody() const noexcept {
    return ask(flags_ | (configured_only_ ? AI_ADDRCONFIG : 0));
  }

 private:
  // Not inlined: a caller that may resume on another thread must not keep the address of errno.
  [[nodiscard]] [[gnu::noinline]] lookup_answer ask(int flags) const noexcept;
  [[nodiscard]] static const char* or_null(const std::string& text) noexcept {
    return text.empty() ? nullptr : text.c_str();
  }

  const kernel_calls& kernel_;
  std::string host_;
  std::string service_;
  int family_;
  int type_;
  int flags_;
  bool configured_only_;
};

lookup_answer lookup::ask(int flags) const noexcept {
  addrinfo hints = {};
  hints.ai_flags = flags;
  hints.ai_family = family_;
  hints.ai_socktype = type_;
  addrinfo* list = nullptr;
  const int code = kernel_.getaddrinfo(or_null(host_), or_null(service_), &hints, &list);
  if (code != 0) return {{}, resolve_error(code, errno)};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*) noexcept> owned(list, kernel_.freeaddrinfo);
  lookup_answer answer;
  try {
    for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
      if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
      const endpoint e(a->ai_addr, a->ai_addrlen);
      if (std::ranges::find(answer.found, e) == answer.found.end()) answer.found.push_back(e);
    }
  } catch (const std::bad_alloc&) {
    return {{}, std::make_error_code(std::errc::not_enough_memory)};
  }
  if (answer.found.empty()) answer.error = net::resolve_errc::no_address;
  return answer;
}

// A thread outside cannot be cancelled, but it may have a time limit. Then another thread blocks in its place.
lookup_answer ask_from_thread(std::unique_ptr<lookup> what, clock::time_point until, std::source_location where) {
  if (until == clock::time_point::max()) return what->ask_anybody();
  oneshot_ends<lookup_answer> answer = make_oneshot<lookup_answer>();
  try {
    std::thread([what = std::move(what), out = std::move(answer.out)]() mutable {
      (void)out.send(what->ask_anybody());
    }).detach();
  } catch (const std::system_error& no_thread) {
    return {{}, no_thread.code()};
  }
  if (recv_result<lookup_answer> got = answer.in.recv_until(until, where)) return std::move(*got);
  return {{}, std::make_error_code(std::errc::timed_out)};
}

lookup_answer ask_from_task(std::unique_ptr<lookup> what, clock::time_point until, std::source_location where) {
  const attributes a{.name = "resolve", .stack_size = lookup_stack, .on = sched::this_worker()->owner().lookups()};
  join_handle<lookup_answer> asked = spawn(a, [what = std::move(what)] {
    this_task::check();  // io.N3
    return what->ask_anybody();
  });
  // If this caller leaves, the look-up goes on alone. It throws nothing, so nobody has to take its exception.
  struct leaving {
    join_handle<lookup_answer>& asked;
    ~leaving() {
      if (!asked.joinable()) return;
      asked.cancel();
      asked.detach();
    }
  } const guard{asked};
  if (until != clock::time_point::max()) {
    timer limit(until);
    auto ended = ~asked;
    if (detail::select_call<waits::preference::in_order>(where, ended, limit).index() != 0)
      return {{}, std::make_error_code(std::errc::timed_out)};
  }
  return asked.join(where);
}

// The first reason, if there is one, not to trouble libc with it.
std::error_code flaw_of(std::string_view host, std::string_view service) noexcept {
  // getaddrinfo copies a numeric host to its stack, of whatever length. No name is longer than this.
  constexpr std::size_t longest = NI_MAXHOST;
  constexpr std::string_view zero("\0", 1);
  if (host.find(zero) != std::string_view::npos || service.find(zero) != std::string_view::npos)
    return std::make_error_code(std::errc::invalid_argument);
  if (host.size() >= longest) return net::resolve_errc::not_found;
  if (service.size() >= longest) return net::resolve_errc::unknown_service;
  // libc would take 65537 as 1.
  std::uint16_t port = 0;
  if (!service.empty() && is_number(service) && read_port(service, port) != text_flaw::none)
    return net::resolve_errc::unknown_service;
  return {};
}

}  // namespace

std::vector<endpoint> resolve(const kernel_calls& kernel, std::string_view host, const net::service& s,
                              const net::resolve_options& options, std::error_code& error, std::source_location where) {
  waits::check_cancelled();
  const std::string service = s.text();
  error = flaw_of(host, service);
  if (!error && options.family == net::address_family::local) error = net::resolve_errc::no_address_of_family;
  if (error) return {};
  auto what = std::make_unique<lookup>(kernel, host, service, options);
  lookup_answer answer;
  bool is_name = true;
  if (is_number(service)) {
    answer = what->ask_numeric();
    is_name = answer.error == net::resolve_errc::not_found;
  }
  if (is_name)
    answer = waits::current_task() == nullptr ? ask_from_thread(std::move(what), options.until, where)
                                              : ask_from_task(std::move(what), options.until, where);
  error = answer.error;
  return std::move(answer.found);
}

std::vector<endpoint> resolve(const kernel_calls& kernel, std::string_view host, const net::service& s,
                              const net::resolve_options& options, std::source_location where) {
  std::error_code error;
  std::vector<endpoint> found = resolve(kernel, host, s, options, error, where);
  if (!error) return found;
  std::string what = "resolve \"" + printable(host) + '"';
  if (const std::string service = s.text(); !is_number(service)) what += ", service \"" + printable(service) + '"';
  throw std::system_error(error, what);
}

}  // namespace weft::inline v1::io

namespace weft::inline v1::net {

std::vector<endpoint> resolve(std::string_view host, const service& s, const resolve_options& options,
                              std::error_code& error, std::source_location where) {
  return io::resolve(io::kernel_of_caller(), host, s, options, error, where);
}

std::vector<endpoint> resolve(std::string_view host, const service& s, std::error_code& error,
                              std::source_location where) {
  return resolve(host, s, resolve_options{}, error, where);
}

std::vector<endpoint> resolve(std::string_view host, const service& s, const resolve_options& options,
                              std::source_location where) {
  return io::resolve(io::kernel_of_caller(), host, s, options, where);
}

}  // namespace weft::inline v1::net
