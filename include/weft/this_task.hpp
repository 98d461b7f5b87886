// What a task can do to itself and ask about itself.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string_view>
#include <utility>

#include <weft/detail/config.hpp>
#include <weft/detail/task_core.hpp>
#include <weft/detail/time_point.hpp>
#include <weft/join_handle.hpp>

namespace weft::inline v1 {

// Lets other tasks run. A cancellation point. An outside thread yields its processor.
WEFT_API void yield(std::source_location where = std::source_location::current());

// Parks the running task until that time, never less. Always a cancellation point, even if the time has passed. An
// outside thread sleeps.
WEFT_API void sleep_until(std::chrono::steady_clock::time_point when,
                          std::source_location where = std::source_location::current());
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> time, std::source_location where = std::source_location::current()) {
  sleep_until(detail::time_after(time), where);
}

// Parks the running task if flag.load() == expected, until somebody unparks it. An unpark before, during or after that
// decision is never lost: it leaves a permit that the next park_if takes. A permit may therefore be an old one, so ask
// again in a loop. Only park_if takes permits; they do not disturb other waits. A cancellation point. Needs a task
// (usage_error).
template <class Flag, class Value>
  requires requires(const Flag& f, const Value& v) {
    { f.load() == v } -> std::convertible_to<bool>;
  }
void park_if(const Flag& flag, const Value& expected, std::source_location where = std::source_location::current()) {
  struct question {
    const Flag& flag;
    const Value& expected;
  } q{flag, expected};
  detail::park_if(
      [](const void* p) {
        const auto* asked = static_cast<const question*>(p);
        return static_cast<bool>(asked->flag.load() == asked->expected);
      },
      &q, where);
}

// Wakes a task from park_if, now or the next time it calls park_if. May be called from any thread.
inline void unpark(const task_ref& t) { t.unpark(); }

namespace this_task {

// All of these except `running` need a task, and throw usage_error on an outside thread.
[[nodiscard]] inline bool running() noexcept { return detail::running_task() != nullptr; }
[[nodiscard]] WEFT_API std::uint64_t id();
[[nodiscard]] WEFT_API std::string_view name();  // valid until the task renames itself
WEFT_API void set_name(std::string_view name);  // up to 31 characters are kept
[[nodiscard]] WEFT_API task_ref ref();

// True if cancellation was requested. Shields do not change the answer.
[[nodiscard]] WEFT_API bool is_cancelled();
// A cancellation point and nothing else.
WEFT_API void check();

// While a shield lives, cancellation of this task is deferred. Shields nest, up to 255.
class WEFT_API shield {
 public:
  [[nodiscard("name it: the shield ends with this object")]] shield();
  ~shield();
  shield(const shield&) = delete;
  shield& operator=(const shield&) = delete;
};

// Calls f under a shield.
template <std::invocable F>
decltype(auto) shielded(F&& f) {
  const shield held;
  return std::invoke(std::forward<F>(f));
}

}  // namespace this_task
}  // namespace weft::inline v1
