// Log of the scheduler's decisions: one line each on stderr, by topic (WEFT_LOG). While it is off, a log point is one
// load from a cache line that nobody writes.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace weft::inline v1::base {

enum class topic : std::uint32_t { park = 1, wake = 2, join = 4, inbox = 8, watch = 16, channel = 32, all = 63 };

extern atomic<std::uint32_t> logged_topics;

[[nodiscard]] inline bool logs(topic t) noexcept {
  return (logged_topics.load(relaxed) & static_cast<std::uint32_t>(t)) != 0;
}

void log_line(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

// Reads WEFT_LOG ("park,wake"). An unknown topic is named on stderr and ignored.
void read_logged_topics() noexcept;

}  // namespace weft::inline v1::base

// The arguments are not evaluated while the topic is off.
#define WEFT_LOG(topic_name, ...)                                         \
  do {                                                                    \
    if (::weft::base::logs(::weft::base::topic::topic_name)) [[unlikely]] \
      ::weft::base::log_line("weft: " #topic_name ": " __VA_ARGS__);      \
  } while (false)
