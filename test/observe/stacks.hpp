// Copies of stacks, for tests of the unwinder.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "context/stack.hpp"
#include "observe/unwind.hpp"
#include "task/fiber.hpp"

namespace weft_test {

// Not a memcpy: the red zones of AddressSanitizer lie on stacks and between constants.
[[gnu::noinline]] __attribute__((no_sanitize("address", "thread", "undefined"))) inline std::vector<std::byte> bytes_at(
    std::uintptr_t begin, std::uintptr_t end) {
  std::vector<std::byte> bytes(end - begin);
  std::byte* to = bytes.data();
  const auto* from = reinterpret_cast<const volatile std::byte*>(begin);
  for (std::size_t i = 0, n = end - begin; i < n; ++i) to[i] = from[i];
  return bytes;
}

struct copied_stack {
  std::uintptr_t address;
  std::vector<std::byte> bytes;

  copied_stack(std::uintptr_t begin, std::uintptr_t end) : address(begin), bytes(bytes_at(begin, end)) {}
  // Of a parked task.
  explicit copied_stack(const weft::task::fiber& f)
      : copied_stack(reinterpret_cast<std::uintptr_t>(f.sp()), reinterpret_cast<std::uintptr_t>(f.stack->top())) {}
  [[nodiscard]] weft::observe::stack_copy view() const { return {address, bytes}; }
};

[[nodiscard]] inline std::vector<weft::observe::frame> frames_of(const copied_stack& s,
                                                                 const weft::observe::registers& start) {
  std::vector<weft::observe::frame> found(weft::observe::most_frames);
  found.resize(weft::observe::unwind(s.view(), start, found));
  return found;
}
[[nodiscard]] inline std::vector<weft::observe::frame> frames_of(const weft::task::fiber& f) {
  const copied_stack s(f);
  return frames_of(s, weft::observe::saved_by_switch(s.view()));
}

// The end of the calling thread's own stack.
[[nodiscard]] inline std::uintptr_t end_of_thread_stack() {
  pthread_attr_t attributes;
  void* begin = nullptr;
  std::size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  pthread_attr_getstack(&attributes, &begin, &size);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<std::uintptr_t>(begin) + size;
}

}  // namespace weft_test
