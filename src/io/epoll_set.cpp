#include "io/epoll_set.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <new>

#include "base/clock.hpp"

namespace weft::inline v1::io {
namespace {

constexpr std::uint64_t tag_of_bell = UINT64_MAX;
constexpr std::uint64_t no_tag = UINT64_MAX - 1;

}  // namespace

epoll_set::~epoll_set() {
  if (const int bell = bell_.load(base::relaxed); bell >= 0) calls_.close(bell);
  if (const int epoll = epoll_.load(base::relaxed); epoll >= 0) calls_.close(epoll);
}

// The bell is edge-triggered: each write to it is an edge, so nobody has to read it.
std::error_code epoll_set::open() noexcept {
  base::lock_guard guard(lock_);
  if (epoll_.load(base::relaxed) >= 0) return {};
  const int epoll = calls_.epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return last_error();
  const int bell = calls_.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event e{EPOLLIN | EPOLLET, {.u64 = tag_of_bell}};
  if (bell < 0 || calls_.epoll_ctl(epoll, EPOLL_CTL_ADD, bell, &e) != 0) {
    const std::error_code why = last_error();
    if (bell >= 0) calls_.close(bell);
    calls_.close(epoll);
    return why;
  }
  bell_.store(bell, base::relaxed);
  epoll_.store(epoll, base::release);  // pairs with the acquire in add(), wait() and interrupt(): the bell is there
  return {};
}

bool epoll_set::make_room_for(int fd) noexcept try {
  const auto number = static_cast<std::size_t>(fd);
  if (number >= tags_.size()) tags_.resize(std::max(number + 1, 2 * tags_.size()), no_tag);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

std::error_code epoll_set::add(int fd, std::uint64_t tag, interest in) noexcept {
  if (epoll_.load(base::acquire) < 0)
    if (const std::error_code why = open()) return why;
  base::lock_guard guard(lock_);
  if (!make_room_for(fd)) return std::make_error_code(std::errc::not_enough_memory);
  std::uint64_t& whose = tags_[static_cast<std::size_t>(fd)];
  const std::error_code why = control(EPOLL_CTL_ADD, fd, tag, in);
  if (!why) whose = tag;
  return why == std::errc::file_exists && whose == tag ? std::error_code() : why;
}

std::error_code epoll_set::change(int fd, std::uint64_t tag, interest in) noexcept {
  return control(EPOLL_CTL_MOD, fd, tag, in);
}

std::error_code epoll_set::control(int operation, int fd, std::uint64_t tag, interest in) noexcept {
  constexpr std::uint32_t reading = EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET;
  epoll_event e{in == interest::both ? reading | EPOLLOUT : reading, {.u64 = tag}};
  return calls_.epoll_ctl(epoll_.load(base::acquire), operation, fd, &e) == 0 ? std::error_code() : last_error();
}

// Explicit, although close() would do it: a duplicate of the descriptor would keep the registration alive.
void epoll_set::remove(int fd, std::uint64_t tag) noexcept {
  if (belongs_to_parent()) return;
  base::lock_guard guard(lock_);
  std::uint64_t& whose = tags_[static_cast<std::size_t>(fd)];
  if (whose != tag) return;
  whose = no_tag;
  epoll_event unused{};
  (void)calls_.epoll_ctl(epoll_.load(base::acquire), EPOLL_CTL_DEL, fd, &unused);
}

std::span<epoll_event> epoll_set::wait(base::time_ns deadline, std::span<epoll_event> room) noexcept {
  timespec left{};
  const bool for_ever = deadline == base::never_ns;
  if (!for_ever && deadline > 0) {
    constexpr base::time_ns second = 1'000'000'000;
    const base::time_ns ns = std::max<base::time_ns>(0, deadline - base::now());
    left = {.tv_sec = static_cast<time_t>(ns / second), .tv_nsec = static_cast<long>(ns % second)};
  }
  const int found = calls_.epoll_wait(epoll_.load(base::acquire), room.data(), static_cast<int>(room.size()),
                                      for_ever ? nullptr : &left);
  if (found <= 0) return {};  // the time is up, or a signal has come
  const auto events = room.first(static_cast<std::size_t>(found));
  const auto rung =
      std::remove_if(events.begin(), events.end(), [](const epoll_event& e) { return e.data.u64 == tag_of_bell; });
  return events.first(static_cast<std::size_t>(rung - events.begin()));
}

void epoll_set::interrupt() noexcept {
  if (epoll_.load(base::acquire) < 0 || belongs_to_parent()) return;  // nobody waits in it
  const std::uint64_t one = 1;
  (void)!calls_.write(bell_.load(base::relaxed), &one, sizeof one);
}

}  // namespace weft::inline v1::io
