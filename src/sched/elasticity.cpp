#include "sched/elasticity.hpp"

#include <algorithm>

namespace weft::inline v1::sched {

std::size_t elasticity::decide(const pool_sample& s) noexcept {
  counters_.samples.add();
  if (s.pressure > 0) counters_.positive.add();
  if (s.pressure < 0) {
    counters_.negative.add();
    const std::uint64_t longest = counters_.longest_negative_streak.get();
    if (++negative_streak_ > longest) counters_.longest_negative_streak.add(negative_streak_ - longest);
  } else {
    negative_streak_ = 0;
  }
  const auto refuse = [](counter& why) {
    why.add();
    return std::size_t{0};
  };
  if (!s.work_waits) return refuse(counters_.no_work);
  if (s.pressure <= 0) return refuse(counters_.nonpositive);
  if (s.idle != 0) return refuse(counters_.idle_capacity);
  const std::size_t on_processor = s.workers - std::min(s.blocked, s.workers);
  if (s.stuck == 0 && on_processor >= base_) return refuse(counters_.not_stuck);
  std::size_t more = 0;
  if (on_processor < base_)
    more = base_ - on_processor;
  else if (on_processor < 2 * base_)
    more = std::min(std::max<std::size_t>(on_processor / 2, 1), 2 * base_ - on_processor);
  more = std::min(more, limit_ - std::min(s.workers, limit_));
  if (more == 0) return refuse(counters_.at_limit);
  counters_.passes.add();
  return more;
}

}  // namespace weft::inline v1::sched
