#include "sched/driver.hpp"

#include "base/cache_line.hpp"
#include "base/clock.hpp"

namespace weft::inline v1::sched {
namespace {

// 0 nothing, 1 asleep, 2 token.
class alignas(base::cache_line) futex_driver final : public driver {
 public:
  void sleep(base::time_ns deadline) noexcept override {
    std::uint32_t seen = nothing;
    if (state_.compare_exchange_strong(seen, asleep, base::relaxed, base::relaxed)) {
      do {
        base::futex_wait(state_, asleep, deadline);
        seen = state_.load(base::relaxed);
      } while (seen == asleep && (deadline == base::never_ns || base::now() < deadline));
    }
    // A token that comes between the load and this exchange is taken too. acquire pairs with the release in wake(): what was
    // queued before the wake is seen after it.
    state_.exchange(nothing, base::order<"driver.sleep">(base::acquire));
  }
  void wake() noexcept override {
    if (base::check<"driver.wake">(state_.exchange(token, base::order<"driver.token">(base::release)) == asleep))
      base::futex_wake(&state_, 1);
  }

 private:
  static constexpr std::uint32_t nothing = 0, asleep = 1, token = 2;
  base::atomic<std::uint32_t> state_{nothing};
};

}  // namespace

std::unique_ptr<driver> make_futex_driver() { return std::make_unique<futex_driver>(); }

}  // namespace weft::inline v1::sched
