// The few system calls for stacks, as a replaceable table: tests make the n-th call fail.
#pragma once

#include <cstddef>

namespace weft::inline v1::context {

// The headers of Debian 12 do not have it; the kernel has it since 6.13.
inline constexpr int madv_guard_install = 102;

struct memory_range {
  void* begin;
  std::size_t size;
};

struct system_memory {
  void* (*map)(std::size_t size) noexcept;  // readable, writable, private, MAP_NORESERVE; nullptr if refused
  int (*unmap)(void* begin, std::size_t size) noexcept;  // as advise and protect: returns 0 or an errno value
  int (*advise)(void* begin, std::size_t size, int advice) noexcept;
  // Gives advice for several ranges in one call. Returns how many of them, counted from the first, were done; 0 if the
  // kernel cannot do it (before 6.14).
  std::size_t (*advise_many)(const memory_range* ranges, std::size_t count, int advice) noexcept;
  int (*protect)(void* begin, std::size_t size, int protection) noexcept;
};

// The table in use: the real one, unless a test replaced it.
[[nodiscard]] const system_memory& memory() noexcept;
[[nodiscard]] const system_memory& real_memory() noexcept;

// Replaces the table for the whole process while this object lives. Must not be used while another thread uses a pool.
class replace_system_memory {
 public:
  explicit replace_system_memory(const system_memory& with) noexcept;
  ~replace_system_memory();
  replace_system_memory(const replace_system_memory&) = delete;
  replace_system_memory& operator=(const replace_system_memory&) = delete;

 private:
  const system_memory* before_;
};

[[nodiscard]] std::size_t page_size() noexcept;
[[nodiscard]] inline std::size_t round_to_pages(std::size_t size) noexcept {
  return (size + page_size() - 1) & ~(page_size() - 1);
}

}  // namespace weft::inline v1::context
