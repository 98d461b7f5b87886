#include "base/log.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace weft::inline v1::base {
namespace {

std::uint32_t topic_named(std::string_view name) noexcept {
  if (name == "park") return static_cast<std::uint32_t>(topic::park);
  if (name == "wake") return static_cast<std::uint32_t>(topic::wake);
  if (name == "join") return static_cast<std::uint32_t>(topic::join);
  if (name == "inbox") return static_cast<std::uint32_t>(topic::inbox);
  if (name == "watch") return static_cast<std::uint32_t>(topic::watch);
  if (name == "channel") return static_cast<std::uint32_t>(topic::channel);
  if (name == "all") return static_cast<std::uint32_t>(topic::all);
  return 0;
}

}  // namespace

atomic<std::uint32_t> logged_topics{0};

void log_line(const char* format, ...) noexcept {
  char line[256];
  std::va_list args;
  va_start(args, format);
  const int n = std::vsnprintf(line, sizeof line - 1, format, args);
  va_end(args);
  if (n < 0) return;
  std::size_t length = static_cast<std::size_t>(n) < sizeof line - 2 ? static_cast<std::size_t>(n) : sizeof line - 2;
  line[length++] = '\n';
  std::fwrite(line, 1, length, stderr);  // one call, so lines of several threads do not mix
}

void read_logged_topics() noexcept {
  const char* text = std::getenv("WEFT_LOG");
  if (text == nullptr) return;
  std::uint32_t topics = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const std::uint32_t found = topic_named(name);
    if (found == 0)
      std::fprintf(
          stderr,
          "weft: WEFT_LOG=%s: there is no topic \"%.*s\"; known: park, wake, join, inbox, watch, channel, all\n", text,
          static_cast<int>(name.size()), name.data());
    topics |= found;
  }
  logged_topics.store(topics, relaxed);
}

}  // namespace weft::inline v1::base
