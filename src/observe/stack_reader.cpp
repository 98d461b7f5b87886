#include "observe/stack_reader.hpp"

#include <algorithm>
#include <cstring>

#include "context/stack.hpp"
#include "observe/memory.hpp"
#include "task/fiber.hpp"

#if defined(__clang__)
#define WEFT_READS_UNGUARDED __attribute__((no_sanitize("thread"), noinline))
#else
#define WEFT_READS_UNGUARDED __attribute__((no_sanitize_thread, noinline))
#endif

namespace weft::inline v1::observe {
namespace {

// volatile: each member is loaded once, whatever is done with it.
template <class T>
[[gnu::always_inline]] inline T loaded(const T& from) noexcept {
  return *static_cast<const volatile T*>(&from);
}

struct extent {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// The description of a stack stays mapped while the pool lives (context.I6). It is rewritten when the region is mapped
// again; then begin and end do not fit the stack pointer, or the copy fails, or the ticket has changed.
WEFT_READS_UNGUARDED extent extent_of(const void* memory) noexcept {
  const auto& s = *static_cast<const context::stack*>(memory);
  const auto begin = reinterpret_cast<std::uintptr_t>(loaded(s.base));
  return {begin, begin + loaded(s.size)};
}

}  // namespace

WEFT_READS_UNGUARDED unguarded look_unguarded(const task::record& t) noexcept {
  const auto& f = static_cast<const task::fiber&>(t);
  return {loaded(f.extras), loaded(f.shields), loaded(f.stack), loaded(f.body), loaded(f.ops)};
}

stack_reader::stack_reader()
    : bytes_(std::make_unique_for_overwrite<std::byte[]>(most_bytes)),
      again_(std::make_unique_for_overwrite<std::byte[]>(most_bytes)) {}

bool stack_reader::copy_to(std::byte* to, const task::record& t, const void* memory, std::uintptr_t& sp,
                           std::size_t& size) const noexcept {
  sp = reinterpret_cast<std::uintptr_t>(task::as_fiber(t).sp());
  if (sp == 0 || memory == nullptr) return false;
  const extent e = extent_of(memory);
  if (sp < e.begin || sp >= e.end) return false;
  size = std::min<std::size_t>(e.end - sp, most_bytes);
  return try_copy(to, reinterpret_cast<const void*>(sp), size);
}

bool stack_reader::copy(const task::record& t, const void* memory) noexcept {
  return copy_to(bytes_.get(), t, memory, sp_, size_);
}

bool stack_reader::copy_is_the_same(const task::record& t, const void* memory) noexcept {
  std::uintptr_t sp = 0;
  std::size_t size = 0;
  return copy_to(again_.get(), t, memory, sp, size) && sp == sp_ && size == size_ &&
         std::memcmp(again_.get(), bytes_.get(), size) == 0;
}

std::size_t stack_reader::frames(std::span<frame> out) const noexcept {
  const stack_copy copy{sp_, {bytes_.get(), size_}};
  return unwind(copy, saved_by_switch(copy), out);
}

}  // namespace weft::inline v1::observe
