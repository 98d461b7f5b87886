// What AddressSanitizer must know of one flow. It is an empty class in builds without it. Only annotate.hpp uses this.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_ASAN 1
#endif
#endif

#if defined(WEFT_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace weft::inline v1::context {

#if defined(WEFT_ASAN)

class asan_flow {
 public:
  void adopt_thread() noexcept;  // annotate.cpp
  void start_on(const void* bottom, std::size_t size) noexcept {
    // A flow that ended by switching away has left the red zones of its frames behind.
    __asan_unpoison_memory_region(bottom, size);
    bottom_ = bottom;
    size_ = size;
    fake_stack_ = nullptr;
  }
  void end() noexcept {}
  void leave_for(asan_flow& to, bool dies) noexcept {
    __sanitizer_start_switch_fiber(dies ? nullptr : &fake_stack_, to.bottom_, to.size_);
  }
  void arrived() noexcept { __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr); }

 private:
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
  void* fake_stack_ = nullptr;
};

// To be called before memory that held stacks is unmapped or used for something else.
inline void asan_forget(const void* memory, std::size_t size) noexcept { __asan_unpoison_memory_region(memory, size); }

#else

class asan_flow {
 public:
  void adopt_thread() noexcept {}
  void start_on(const void*, std::size_t) noexcept {}
  void end() noexcept {}
  void leave_for(asan_flow&, bool) noexcept {}
  void arrived() noexcept {}
};

inline void asan_forget(const void*, std::size_t) noexcept {}

#endif

}  // namespace weft::inline v1::context
