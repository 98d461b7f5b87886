// What the tests of files share.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "io/file_calls.hpp"
#include "io/kernel.hpp"
#include "support/usual.hpp"
#include <weft/fs.hpp>

namespace file_test {

using namespace support::usual;
using std::filesystem::path;
using weft::const_buffer;
using weft::mutable_buffer;
using weft::fs::file;
using weft::fs::open_options;
namespace fs = weft::fs;
namespace io = weft::io;

// A directory that goes with the object.
class scratch {
 public:
  scratch() {
    std::string name = std::filesystem::temp_directory_path() / "weft-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~scratch() { std::filesystem::remove_all(path_); }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  [[nodiscard]] path operator/(const path& name) const { return path_ / name; }
  [[nodiscard]] const path& directory() const { return path_; }
  // Makes a file without Weft.
  path with(const path& name, const std::string& contents) const {
    std::ofstream(path_ / name, std::ios::binary) << contents;
    return path_ / name;
  }
  [[nodiscard]] std::size_t entries() const {
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(path_)) ++n;
    return n;
  }

 private:
  path path_;
};

// A test that ends with as many open descriptors as it began.
class leaves_no_descriptor : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(support::open_descriptors(), before_); }
  scratch dir;

 private:
  const std::size_t before_ = support::open_descriptors();
};

// On this thread, and in a task at each worker count.
template <class F>
void in_thread_and_tasks(F f) {
  f();
  at_worker_counts_in_a_task(f);
}

// The message of the std::system_error that f throws.
template <class F>
std::string message_of(F f, std::errc expected) {
  try {
    f();
    ADD_FAILURE() << "nothing was thrown";
    return {};
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), expected) << e.what();
    return e.what();
  }
}

// A file that uses these kernel calls.
[[nodiscard]] inline file open_with(const io::kernel_calls& calls, const path& p, const open_options& how = {}) {
  return io::file_access::open(calls, p, how, nullptr, std::source_location::current());
}

inline constexpr open_options for_writing{.write = true, .create = true};

// How often tasks of the runtime were off the worker.
[[nodiscard]] inline std::uint64_t hand_overs(watched_runtime& rt) { return rt.core().io().look().given_back; }

// The bytes 'a', 'b', … again and again, with a period that no buffer has.
[[nodiscard]] inline std::string letters(std::size_t n) {
  std::string s(n, '\0');
  for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>('a' + i % 23);
  return s;
}

// Memory that is reserved and not there until somebody touches it.
class reserved_memory {
 public:
  explicit reserved_memory(std::size_t size)
      : size_(size),
        at_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (at_ == MAP_FAILED) std::abort();
  }
  ~reserved_memory() { ::munmap(at_, size_); }
  reserved_memory(const reserved_memory&) = delete;
  reserved_memory& operator=(const reserved_memory&) = delete;
  [[nodiscard]] mutable_buffer all() const { return {at_, size_}; }

 private:
  std::size_t size_;
  void* at_;
};

}  // namespace file_test
