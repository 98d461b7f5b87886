// A callable that is called again when it throws, after a pause that grows.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

#include <weft/cancelled.hpp>
#include <weft/detail/clock.hpp>
#include <weft/detail/null_callable.hpp>
#include <weft/this_task.hpp>

namespace weft::inline v1 {

struct restarts {
  std::size_t most = SIZE_MAX;  // restarts; after the last one the exception propagates
  std::chrono::nanoseconds pause = std::chrono::milliseconds(10);  // before the first restart
  double growth = 2;  // the factor by which the pause grows each time
  std::chrono::nanoseconds longest_pause = std::chrono::seconds(10);
  // A run of at least this length counts as a recovery: pause and count start again.
  std::chrono::nanoseconds stable_after = std::chrono::minutes(1);
  std::function<void(std::exception_ptr error, std::size_t restart)> on_restart = {};  // called before each pause
};

// Calls f until it returns. Cancellation ends it and is not followed by a restart. The same f is called each time, with
// whatever the failed run left in it. The pause is a cancellation point. A null function is a usage_error.
template <class F>
  requires std::invocable<std::decay_t<F>&>
[[nodiscard]] auto supervised(restarts policy, F&& f) {
  detail::check_not_null(f, "supervise was given a null function: it would fail and be started again for ever");
  return [policy = std::move(policy), f = std::forward<F>(f)]() mutable -> std::invoke_result_t<std::decay_t<F>&> {
    auto pause = policy.pause;
    for (std::size_t restart = 0;;) {
      const auto started = detail::clock_now();
      std::exception_ptr error;
      try {
        return std::invoke(f);
      } catch (const cancelled&) {
        throw;
      } catch (...) {
        error = std::current_exception();
      }
      if (detail::clock_now() - started >= policy.stable_after) {
        restart = 0;
        pause = policy.pause;
      }
      if (restart++ == policy.most) std::rethrow_exception(error);
      if (policy.on_restart) policy.on_restart(std::exchange(error, nullptr), restart);
      sleep_for(pause);
      const std::chrono::duration<double, std::nano> longer = pause * std::max(policy.growth, 1.0);
      pause = longer < policy.longest_pause ? std::chrono::duration_cast<std::chrono::nanoseconds>(longer)
                                            : policy.longest_pause;
    }
  };
}

}  // namespace weft::inline v1
