// What a driver promises, one step each; driver_test.cpp explores the real one (sched/futex_driver.cpp). A test file asks for it
// with `// abstract driver`.
//
// Kept: a wake before the sleep makes it return at once and is taken by it; what the waker did is seen; a deadline ends it too.
#include "sched/driver.hpp"

#include "base/check.hpp"

namespace weft::inline v1::sched {
namespace {

class token_driver final : public driver {
 public:
  void sleep(base::time_ns deadline) noexcept override {
    if (!explore::token_take(&no_token_, no_token_.initial_bits(), deadline != base::never_ns,
                             explore::where::current()))
      base::pass_time(deadline);
  }
  void wake() noexcept override { no_token_.exchange(0, base::release); }  // pairs with the acquire in lock_acquire

 private:
  base::atomic<std::uint32_t> no_token_{1};
};

}  // namespace

std::unique_ptr<driver> make_futex_driver() { return std::make_unique<token_driver>(); }

}  // namespace weft::inline v1::sched
