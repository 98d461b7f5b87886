#include <weftgz/progress.hpp>

#include <algorithm>
#include <cstdio>

#include <sys/ioctl.h>
#include <unistd.h>

#include <weft/this_task.hpp>
#include <weft/timer.hpp>

namespace weftgz {
namespace {

using namespace std::chrono_literals;

std::atomic<bool> is_shown{false};

std::size_t columns_of_terminal() noexcept {
  winsize w{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

std::string minutes(double seconds) {
  char text[32];
  const auto s = static_cast<unsigned long>(std::clamp(seconds, 0.0, 359999.0));
  if (s >= 3600)
    std::snprintf(text, sizeof text, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
  else
    std::snprintf(text, sizeof text, "%lu:%02lu", s / 60, s % 60);
  return text;
}

}  // namespace

std::string readable(double amount) {
  constexpr const char* units[] = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  for (; amount >= 1000 && unit + 1 < std::size(units); ++unit) amount /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || amount >= 100 ? "%.0f %s" : "%.1f %s", amount, units[unit]);
  return text;
}

std::string progress_line(const counters& c, std::chrono::duration<double> elapsed, bool decompressing,
                          std::size_t columns) {
  const auto in = static_cast<double>(c.bytes_read()), out = static_cast<double>(c.bytes_written());
  const auto all = static_cast<double>(c.bytes_expected());
  const double seconds = std::max(elapsed.count(), 1e-3);
  const double plain = decompressing ? out : in, packed = decompressing ? in : out;
  char text[128];
  std::snprintf(text, sizeof text, "%sB  %sB/s  %.1f%%", readable(in).c_str(), readable(plain / seconds).c_str(),
                plain > 0 ? 100 * packed / plain : 0.0);
  std::string line = text;
  if (all > 0 && in > 0) {
    const double share = std::min(in / all, 1.0);
    std::snprintf(text, sizeof text, "%3.0f%%  ", 100 * share);
    line = text + line + "  " + minutes(seconds / share - seconds) + " left";
    constexpr std::size_t width = 24;
    if (line.size() + width + 3 < columns) {
      const auto full = static_cast<std::size_t>(share * width);
      line = "[" + std::string(full, '#') + std::string(width - full, '.') + "] " + line;
    }
  }
  if (line.size() >= columns) line.resize(columns > 0 ? columns - 1 : 0);
  return line;
}

void show_progress(const counters& c, bool decompressing, std::chrono::milliseconds after) {
  struct clearing {
    ~clearing() { clear_progress(); }
  } const at_the_end;
  const auto start = std::chrono::steady_clock::now();
  weft::sleep_for(after);
  for (auto tick = weft::tick(100ms);; tick.wait()) {
    const std::string line =
        "\r" + progress_line(c, std::chrono::steady_clock::now() - start, decompressing, columns_of_terminal()) +
        "\033[K";
    is_shown = true;
    std::fputs(line.c_str(), stderr);
  }
}

void clear_progress() {
  if (is_shown.exchange(false)) std::fputs("\r\033[K", stderr);
}

}  // namespace weftgz
