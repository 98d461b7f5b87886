// What the system says about this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.hpp"

namespace support {

// A field of /proc/self/status: "VmRSS", "VmPTE", "VmHWM" (in KiB), "Threads", …
[[nodiscard]] std::size_t status(const char* field);
[[nodiscard]] inline std::size_t rss() { return status("VmRSS") * 1024; }  // bytes
[[nodiscard]] inline std::size_t threads() { return status("Threads"); }
[[nodiscard]] std::size_t mappings();         // lines of /proc/self/maps
[[nodiscard]] std::size_t open_descriptors();
// Makes room for so many descriptors. Returns for how many there is room, if the limit cannot be raised so far.
[[nodiscard]] std::size_t raise_descriptor_limit(std::size_t wanted);
[[nodiscard]] std::size_t available_memory();  // bytes, of the machine

// Of all threads but the calling one, or of those among them whose names begin like this. A thread of which nothing has
// changed has not run meanwhile, so it has made no system call either.
struct activity {
  std::uint64_t switches = 0;  // voluntary and other context switches
  std::uint64_t cpu_ticks = 0;  // user and system, in clock ticks (10 ms)
  std::uint64_t turns = 0;  // how often it got a processor; 0 if the kernel does not count that
  std::uint64_t cpu_ns = 0;  // and for how long
  friend bool operator==(const activity&, const activity&) = default;
};
[[nodiscard]] activity activity_of_others(const std::string& named = "");

// The threads but the calling one, seen one after the other, all slept: none of them is just starting.
[[nodiscard]] bool others_sleep();

// Its number for the system; 0 if none has that name.
[[nodiscard]] int thread_named(const std::string& name);

// The whole text of a file; "" if it cannot be read.
[[nodiscard]] std::string file_text(const std::string& path);

// Sets or, with nullptr, removes an environment variable, and puts the old value back at the end.
class environment {
 public:
  environment(const char* variable, const char* value);
  ~environment();
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;

 private:
  std::string variable_;
  std::string before_;
  bool was_set_;
};

#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_tsan = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool under_tsan = true;
#else
inline constexpr bool under_tsan = false;
#endif
#else
inline constexpr bool under_tsan = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool under_asan = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool under_asan = true;
#else
inline constexpr bool under_asan = false;
#endif
#else
inline constexpr bool under_asan = false;
#endif

// `full` rounds as they are in release and checked builds, a fraction of them under a sanitizer.
[[nodiscard]] constexpr std::size_t scaled(std::size_t full) noexcept {
  const std::size_t n = under_tsan ? full / 50 : under_asan ? full / 20 : full;
  return n == 0 ? 1 : n;
}

// Whether this is a run of ./dev soak, where stress tests do as much as was ever asked for: WEFT_TEST_LONG=1.
[[nodiscard]] bool is_soak();
// The rounds of a stress test: `usual` ones, scaled, and `full` in a soak. WEFT_TEST_LONG=n with a larger n stands for
// the most rounds that a soak makes.
[[nodiscard]] std::size_t soaked(std::size_t usual, std::size_t full);

}  // namespace support
