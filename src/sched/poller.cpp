#include "sched/poller.hpp"

#include <algorithm>

#include "sched/intake.hpp"

namespace weft::inline v1::sched {

std::size_t poller::most_for(const intake& on) noexcept {
  constexpr std::size_t least = 16;
  constexpr std::size_t largest = 256;
  return std::clamp(on.queues().room_for_woken() / 2, least, largest);
}

std::size_t poller::poll(base::time_ns now, intake& on) noexcept {
  if (!is_wanted() || !take(use::polled)) return 0;
  chain<task::record> woken;
  driver_->poll(0, most_for(on), woken);
  leave(now);
  const std::size_t count = woken.size();
  if (count != 0) on.accept_events(std::move(woken));
  return count;
}

}  // namespace weft::inline v1::sched
