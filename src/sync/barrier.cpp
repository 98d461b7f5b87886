// Latch and barrier: each is a counter in front of a signal.
#include <weft/barrier.hpp>

#include <new>

#include "base/atomic.hpp"
#include "base/mutation.hpp"
#include "sync/caller.hpp"
#include "sync/signal.hpp"
#include <weft/errors.hpp>
#include <weft/latch.hpp>

namespace weft::inline v1 {

namespace {
using counter = base::atomic<std::size_t>;
}

latch::latch(std::size_t count) {
  ::new (&locks::core_in<counter>(count_)) counter(count);
  if (count == 0) locks::set_for_all(signal_.core());
}

void latch::count_down(std::size_t n) {
  counter& left = locks::core_in<counter>(count_);
  std::size_t now = left.load(base::relaxed);
  do {
    if (n > now) [[unlikely]]
      detail::throw_usage("a latch is counted down below zero");
    // acq_rel: the last to count down sees what all did before they counted down; its set() publishes that to the
    // waiters.
  } while (!left.compare_exchange_weak(now, now - n, base::order<"latch.count_down">(base::acq_rel), base::relaxed));
  if (base::check<"latch.last">(now == n && n != 0)) locks::set_for_all(signal_.core());
}

void latch::arrive_and_wait(std::size_t n, std::source_location where) {
  waits::check_cancelled();
  count_down(n);
  wait(where);
}

namespace locks {

barrier_room::barrier_room(std::size_t expected) : expected_(expected), missing_(expected) {
  if (expected == 0) weft::detail::throw_usage("a barrier for nobody");
}

barrier_room::arrival barrier_room::arrive(bool and_drop, std::source_location where) {
  signal_core& s = signal_.core();
  s.lock();
  if (missing_ == 0) {
    s.unlock();
    weft::detail::throw_usage("more have arrived at a barrier than are expected", where);
  }
  if (and_drop) base::step<"barrier.drop">([&] { --expected_; });
  --missing_;
  const arrival mine{s.round(), base::check<"barrier.last">(missing_ == 0)};
  s.unlock();
  return mine;
}

void barrier_room::complete_round() noexcept {
  claimed_waiters all;
  signal_core& s = signal_.core();
  s.lock();
  base::step<"barrier.refill">([&] { missing_ = expected_; });
  s.end_round(all);
  s.unlock();
  all.resume();
}

void barrier_room::wait(std::uint64_t round, std::source_location where) {
  wait_for(signal_.core(), until_round_ends{round}, barrier_kind, where);
}

std::size_t barrier_room::expected() noexcept {
  signal_core& s = signal_.core();
  s.lock();
  const std::size_t n = expected_;
  s.unlock();
  return n;
}

}  // namespace locks
}  // namespace weft::inline v1
