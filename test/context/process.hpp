// What the tests ask the system about this process.
#pragma once

#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace weft_test {

// A field of /proc/self/status in KiB: "VmRSS:", "VmPTE:", "VmSize:".
inline std::size_t status_kib(const char* field) {
  std::size_t value = 0;
  if (std::FILE* f = std::fopen("/proc/self/status", "re")) {
    char line[256];
    while (std::fgets(line, sizeof line, f) != nullptr)
      if (std::strncmp(line, field, std::strlen(field)) == 0) std::sscanf(line + std::strlen(field), "%zu", &value);
    std::fclose(f);
  }
  return value;
}

inline std::size_t mappings() {
  std::size_t count = 0;
  if (std::FILE* f = std::fopen("/proc/self/maps", "re")) {
    for (int c; (c = std::fgetc(f)) != EOF;) count += c == '\n';
    std::fclose(f);
  }
  return count;
}

// Whether a write to `address` faults. Not for several threads at once.
class fault_probe {
 public:
  fault_probe() {
    struct sigaction ours{};
    ours.sa_handler = [](int) { siglongjmp(back(), 1); };
    sigaction(SIGSEGV, &ours, &before_);
  }
  ~fault_probe() { sigaction(SIGSEGV, &before_, nullptr); }
  fault_probe(const fault_probe&) = delete;
  fault_probe& operator=(const fault_probe&) = delete;

  __attribute__((noinline, no_sanitize("address", "thread"))) bool faults(std::byte* address) {
    if (sigsetjmp(back(), 1) != 0) return true;
    *static_cast<volatile std::byte*>(address) = std::byte{1};
    return false;
  }

 private:
  static sigjmp_buf& back() {
    static sigjmp_buf buffer;
    return buffer;
  }
  struct sigaction before_{};
};

}  // namespace weft_test
