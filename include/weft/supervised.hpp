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
#include <weft/detail/null_callable.hpp>
#include <weft/this_task.hpp>

namespace weft::inline v1 {

struct restarts {
  std::size_t most = SIZE_MAX;  // times it is started again; then its exception goes on
  std::chrono::nanoseconds pause = std::chrono::milliseconds(10);  // before the first
  double growth = 2;  // of the pause, each time
  std::chrono::nanoseconds longest_pause = std::chrono::seconds(10);
  // A run at least this long counts as a recovery: pause and count begin anew.
  std::chrono::nanoseconds stable_after = std::chrono::minutes(1);
  std::function<void(std::exception_ptr error, std::size_t restart)> on_restart = {};  // told before each pause
};

// Calls f until it returns; cancellation ends it, and is not restarted. The same f each time, with whatever the run that failed left
// in it. The pause is a cancellation point. A null function: usage_error.
template <class F>
  requires std::invocable<std::decay_t<F>&>
[[nodiscard]] auto supervised(restarts policy, F&& f) {
  detail::check_not_null(f, "supervise was given a null function: it would fail and be started again for ever");
  return [policy = std::move(policy), f = std::forward<F>(f)]() mutable -> std::invoke_result_t<std::decay_t<F>&> {
    using clock = std::chrono::steady_clock;
    auto pause = policy.pause;
    for (std::size_t restart = 0;;) {
      const auto started = clock::now();
      std::exception_ptr error;
      try {
        return std::invoke(f);
      } catch (const cancelled&) {
        throw;
      } catch (...) {
        error = std::current_exception();
      }
      if (clock::now() - started >= policy.stable_after) {
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
