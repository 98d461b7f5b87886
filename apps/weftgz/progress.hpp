// How far the work is, counted by the ends of the pipelines; and a line that shows it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace weftgz {

// Only counts: nobody concludes from one of them that something else has happened, so relaxed is enough.
class counters {
 public:
  void read(std::uint64_t n) noexcept { read_.fetch_add(n, std::memory_order_relaxed); }
  void wrote(std::uint64_t n) noexcept { wrote_.fetch_add(n, std::memory_order_relaxed); }
  void expect(std::uint64_t n) noexcept { expected_.fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return read_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes_written() const noexcept { return wrote_.load(std::memory_order_relaxed); }
  // Of all input, as far as it is known; 0: unknown.
  [[nodiscard]] std::uint64_t bytes_expected() const noexcept { return expected_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> read_{0}, wrote_{0}, expected_{0};
};

// One line without its end: bar, share, rate, ratio and the time that is left. `columns` limits it.
[[nodiscard]] std::string progress_line(const counters& c, std::chrono::duration<double> elapsed, bool decompressing,
                                        std::size_t columns);

// Rewrites the line on stderr ten times a second, after a first second in which short work ends. A task calls it and is
// cancelled when the work is done; it clears the line then.
void show_progress(const counters& c, bool decompressing, std::chrono::milliseconds after);

// Before anything else is printed on stderr: takes the line away, if there is one.
void clear_progress();

[[nodiscard]] std::string readable(double amount);  // 1.5 M

}  // namespace weftgz
