#include "io/connect_race.hpp"

#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "io/watched.hpp"
#include <weft/detail/select_core.hpp>
#include <weft/detail/timer_core.hpp>

namespace weft::inline v1::io {
namespace {

constexpr waits::wait_kind race_kind{"connect", waits::kind_number::connect};

void bind_before_connect(fd_record& r, const net::endpoint& local, std::error_code& why) {
  // Attempts that run at the same time share a fixed port, and it may be one that a connection had a moment ago. A port
  // that the kernel chooses is better chosen when the peer is known: then connections to different peers share ports.
  std::error_code ignored;  // bind says what is wrong
  if (local.port() != 0)
    set_flag(r, SOL_SOCKET, SO_REUSEADDR, true, ignored);
  else
    set_flag(r, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, true, ignored);
  bind_to(r, local, why);
}

}  // namespace

fd_handle open_for_connect(const kernel_calls& calls, const net::endpoint& to, const net::connect_options& o,
                           std::error_code& why) {
  fd_handle h =
      open_socket(calls, to.family() == net::address_family::v6 ? AF_INET6 : AF_INET, SOCK_STREAM, tcp_traits, why);
  if (why) return {};
  fd_record& r = h.record();
  const net::option_socket options(r.fd(), calls);
  if (o.no_delay) why = net::no_delay{}.write_to(options);
  if (!why && o.keep_alive) why = o.keep_alive->write_to(options);
  if (!why && o.local.family() != net::address_family::none) bind_before_connect(r, o.local, why);
  return why ? fd_handle() : std::move(h);
}

connect_race::connect_race(const kernel_calls& calls, const std::vector<net::endpoint>& order,
                           const net::connect_options& o)
    : calls_(calls),
      options_(o),
      plan_(order.size(), std::max(o.attempt_delay, detail::clock::duration::zero())) {
  attempts_.reserve(order.size());
  for (const net::endpoint& to : order) attempts_.push_back({.to = to});
}

fd_handle connect_race::run(const limit& l, std::error_code& why) {
  why.clear();
  for (;;) {
    const auto now = detail::clock_now();
    const bool is_late = now >= l.until;
    // When the time is up each is asked once more, because an edge may not have been told yet.
    for (std::size_t i = 0; i < attempts_.size() && !winner_.is_open(); ++i)
      if (attempts_[i].now == phase::waiting && (is_late || has_news(attempts_[i]))) look_at(i);
    while (!is_late && !winner_.is_open()) {
      const auto next = plan_.next(now);
      if (!next) break;
      begin(*next);
    }
    if (winner_.is_open()) {
      attempts_.clear();  // closes the sockets of the others
      return std::move(winner_);
    }
    if (plan_.all_failed()) {
      why = plan_.error();
      return {};
    }
    if (is_late) {
      why = std::make_error_code(std::errc::timed_out);
      return {};
    }
    wait_for_news(std::min(plan_.next_time(), l.until), l.where);
  }
}

// ---- one attempt ----------------------------------------------------------------------------------------------------

void connect_race::begin(std::size_t i) {
  std::error_code why;
  attempts_[i].socket = open_for_connect(calls_, attempts_[i].to, options_, why);
  if (why) return fail(i, why);
  attempts_[i].now = phase::waiting;
  look_at(i);
}

// The order matters, as in transfer(): what the direction looked like is read before the call, and the descriptor is
// watched before the direction is told that the call has found nothing (io.D1).
void connect_race::look_at(std::size_t i) {
  attempt& a = attempts_[i];
  fd_record& r = a.socket.record();
  direction& d = r.in(side::write);
  const direction::view seen = d.look();
  const std::ptrdiff_t result = connect_once(r, a.to);
  if (result == 0) {
    winner_ = std::move(a.socket);
  } else if (result != -EAGAIN) {
    fail(i, {static_cast<int>(-result), std::generic_category()});
  } else if (waits::current_task() != nullptr) {
    if (const std::error_code why = watch_for_this_task(r, side::write)) return fail(i, why);
    d.found_nothing(seen);
  }
}

void connect_race::fail(std::size_t i, std::error_code why) {
  attempts_[i].now = phase::failed;
  attempts_[i].why = why;
  attempts_[i].socket = {};
  plan_.failed(i, why);
}

bool connect_race::has_news(const attempt& a) const noexcept {
  // An outside thread has asked the kernel itself.
  return !may_skip(a.socket.record().in(side::write).look());
}

// ---- waiting --------------------------------------------------------------------------------------------------------

void connect_race::wait_for_news(detail::clock::time_point until, std::source_location where) {
  if (waits::current_task() != nullptr)
    wait_in_task(until, where);
  else
    wait_on_thread(until);
}

void connect_race::wait_in_task(detail::clock::time_point until, std::source_location where) {
  std::vector<readiness> news;
  std::vector<waits::arm> arms;
  news.reserve(plan_.running());  // the arms refer to them
  arms.reserve(plan_.running() + 1);
  for (const attempt& a : attempts_) {
    if (a.now != phase::waiting) continue;
    news.emplace_back(a.socket.record(), side::write, race_kind);
    arms.push_back({&news.back(), &news.back().node()});
  }
  timing::timer_operation limit(until.time_since_epoch().count());
  if (until != without_limit) arms.push_back({&limit, &limit.node()});
  (void)waits::select_in_order(arms, where);
}

// The wait of an outside thread is over when poll(2) says so, whatever the reason: then everything is looked at again.
void connect_race::wait_on_thread(detail::clock::time_point until) {
  std::vector<pollfd> all;
  all.reserve(plan_.running());
  for (const attempt& a : attempts_)
    if (a.now == phase::waiting) all.push_back({a.socket.record().fd(), POLLOUT, 0});
  const timespec left = time_left(until.time_since_epoch().count());
  (void)calls_.ppoll(all.data(), all.size(), until == without_limit ? nullptr : &left);
}

// ---- messages -------------------------------------------------------------------------------------------------------

std::string connect_race::story() const {
  if (attempts_.size() == 1) return " at " + attempts_.front().to.to_string();
  std::string all;
  for (const attempt& a : attempts_) {
    all += (all.empty() ? " (" : "; ") + a.to.to_string() + ": ";
    switch (a.now) {
      case phase::not_tried: all += "not tried"; break;
      case phase::waiting: all += "no answer"; break;
      case phase::failed: all += a.why.message(); break;
    }
  }
  return all + ')';
}

}  // namespace weft::inline v1::io
