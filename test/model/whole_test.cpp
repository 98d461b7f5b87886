// whole runtime
#include "explore/explore.hpp"
#include "sched/scheduler.hpp"
#include <weft/runtime.hpp>

namespace base = weft::base;
namespace sched = weft::sched;

namespace {
struct runtime : sched::scheduler {
  explicit runtime(std::size_t workers, bool stealing = true) : scheduler(options(workers, stealing)) {}
  static sched::scheduler_options options(std::size_t workers, bool stealing) {
    sched::scheduler_options o;
    o.workers = workers;
    o.queue_capacity = 4;
    o.stealing = stealing;
    return o;
  }
};
template <class F>
auto spawn(sched::scheduler& s, F f) {
  return weft::detail::spawn_in(&s, nullptr, std::move(f));
}
}  // namespace

MODEL_TEST(whole_one_worker, .preemptions = 3) {
  runtime s(1);
  base::plain<int> x{0};
  spawn(s, [&] { x = 1; }).join();
  model_assert(x == 1);
}

MODEL_TEST(whole_two_workers, .preemptions = 1, .old_reads = 1) {
  runtime s(2);
  base::plain<int> x{0};
  spawn(s, [&] { x = 1; }).join();
  model_assert(x == 1);
}
