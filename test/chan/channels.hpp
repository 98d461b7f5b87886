// What the channel tests share: kinds of channels, elements that count themselves, waiting for waiters.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "support/usual.hpp"

namespace chan_test {

using namespace support::usual;
using weft::send_status;

inline constexpr std::size_t no_limit = SIZE_MAX;

template <class T>
[[nodiscard]] weft::channel_ends<T> make(std::size_t capacity) {
  return capacity == no_limit ? weft::make_channel<T>(weft::unlimited) : weft::make_channel<T>(capacity);
}

// Runs test(capacity) for each kind of first-in-first-out channel: 3 is a ring with more slots than capacity. Not from a task
// that may move to another thread meanwhile: the trace belongs to the thread.
template <class Test>
void at_capacities(Test&& test) {
  for (const std::size_t capacity :
       {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{8}, no_limit}) {
    SCOPED_TRACE(testing::Message() << "capacity " << (capacity == no_limit ? "unlimited" : std::to_string(capacity)));
    test(capacity);
    if (testing::Test::HasFatalFailure()) return;
  }
}

template <class End>
void until_senders_wait(const End& end, std::size_t n = 1,
                        std::source_location where = std::source_location::current()) {
  until([&] { return end.statistics().waiting_senders == n; }, support::patience, where);
}
template <class End>
void until_receivers_wait(const End& end, std::size_t n = 1,
                          std::source_location where = std::source_location::current()) {
  until([&] { return end.statistics().waiting_receivers == n; }, support::patience, where);
}

template <class End>
[[nodiscard]] bool nobody_waits(const End& end) {
  const weft::channel_statistics s = end.statistics();
  return s.waiting_senders == 0 && s.waiting_receivers == 0;
}

// An element that is not small, cannot be copied, and counts how many hold a value.
class token {
 public:
  explicit token(int v) noexcept : value_(v) { ++alive; }
  token(token&& other) noexcept : value_(std::exchange(other.value_, nothing)) {}
  token& operator=(token&& other) noexcept {
    if (this == &other) return *this;
    if (value_ != nothing) --alive;
    value_ = std::exchange(other.value_, nothing);
    return *this;
  }
  ~token() {
    if (value_ != nothing) --alive;
  }
  [[nodiscard]] int value() const noexcept { return value_; }
  [[nodiscard]] bool is_there() const noexcept { return value_ != nothing; }

  static inline base::atomic<std::int64_t> alive{0};

 private:
  static constexpr int nothing = INT32_MIN;
  int value_;
};

[[nodiscard]] inline std::exception_ptr error(const char* text) {
  return std::make_exception_ptr(std::runtime_error(text));
}
[[nodiscard]] inline std::string text_of(const std::exception_ptr& e) {
  if (e == nullptr) return "";
  try {
    std::rethrow_exception(e);
  } catch (const std::exception& known) {
    return known.what();
  }
}
template <class F>
[[nodiscard]] std::string text_thrown_by(F&& f) {
  try {
    f();
  } catch (const std::exception& known) {
    return known.what();
  }
  return "";
}

}  // namespace chan_test
