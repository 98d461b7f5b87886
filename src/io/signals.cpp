#include <weft/signals.hpp>

#include <sys/eventfd.h>

#include <string>

#include "io/signal_listeners.hpp"
#include "io/socket.hpp"
#include "io/transfer.hpp"
#include <weft/detail/task_core.hpp>
#include <weft/this_task.hpp>

namespace weft::inline v1 {
namespace {

constexpr waits::wait_kind signal_kind{"signal"};

std::optional<int> receive_signal(io::fd_record& r, io::signal_listener& from, const io::limit& l,
                                  std::error_code& why) {
  const std::ptrdiff_t n = io::transfer(r, io::side::read, 0, {signal_kind, l}, why,
                                        [&](int fd) noexcept { return from.receive(r.calls(), fd); });
  return n > 0 ? std::optional(static_cast<int>(n)) : std::nullopt;
}

[[noreturn]] void throw_listen_error(const std::error_code& why, std::span<const int> numbers) {
  std::string what = "listen for signals";
  for (const int n : numbers) what += " " + std::to_string(n);
  throw std::system_error(why, what);
}

}  // namespace

signals::signals(std::span<const int> numbers) {
  if (numbers.empty()) detail::throw_usage("a listener needs the number of a signal");
  const io::kernel_calls& calls = io::kernel_of_caller();
  const int bell = calls.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
  if (bell < 0) throw_listen_error(io::last_error(), numbers);
  bell_ = io::fd_handle(io::fd_record::take_over(bell, calls, {}));
  std::error_code why;
  listener_ = io::signal_listener::add(numbers, bell, why);
  if (why) throw_listen_error(why, numbers);
}

signals::signals(signals&& other) noexcept
    : bell_(std::move(other.bell_)),
      listener_(std::exchange(other.listener_, nullptr)) {}

signals& signals::operator=(signals&& other) noexcept {
  const signals before(std::move(*this));
  bell_ = std::move(other.bell_);
  listener_ = std::exchange(other.listener_, nullptr);
  return *this;
}

signals::~signals() { close(); }

// The listener first: no handler may use the eventfd when it is closed (io.S2). While the number is held nobody else has
// it, so it tells whether the listener is still ours.
void signals::close() noexcept {
  if (!bell_.is_open()) return;
  const io::use held(bell_.record());
  if (!held) return;
  listener_->remove(bell_.record().fd());
  bell_.close();
}

int signals::recv(std::error_code& why, source where) const {
  io::fd_record& bell = bell_.record();  // throws if this is empty, and has no listener
  return receive_signal(bell, *listener_, {io::without_limit, where}, why).value_or(0);
}

int signals::recv(source where) const {
  std::error_code why;
  const int number = recv(why, where);
  if (why) throw std::system_error(why, "wait for a signal");
  return number;
}

std::optional<int> signals::recv_until(time_point when, source where) const {
  std::error_code why;
  io::fd_record& bell = bell_.record();
  const auto number = receive_signal(bell, *listener_, {when, where}, why);
  if (why && why != std::errc::timed_out) throw std::system_error(why, "wait for a signal");
  return number;
}

std::optional<int> signals::try_recv() const {
  io::fd_record& r = bell_.record();
  const io::use in_use(r);
  if (!in_use) throw std::system_error(io::closed_by_another(), "look for a signal");
  const std::ptrdiff_t n = listener_->receive(r.calls(), r.fd());
  return n > 0 ? std::optional(static_cast<int>(n)) : std::nullopt;
}

signal_arm signals::arrived() const {
  io::fd_record& bell = bell_.record();
  return {bell, *listener_};
}

// If another task was quicker, this waits for the next signal: the select has been won.
bool signal_arm::complete() {
  if (!ready_.complete()) return false;
  const this_task::shield held;
  std::error_code why;
  const auto number = receive_signal(*record_, *listener_, {}, why);
  number_ = number.value_or(0);
  return number.has_value();
}

}  // namespace weft::inline v1
