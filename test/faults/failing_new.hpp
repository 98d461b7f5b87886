// operator new that fails at the n-th call, for the one source file of a test program. Not under TSan, whose runtime has an
// operator new of its own.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <system_error>

#include "base/atomic.hpp"

namespace {

namespace base = weft::base;

base::atomic<long> until_failure{-1};  // counts down; the call that finds 0 fails
base::atomic<long> alive{0};
base::atomic<long> made{0};

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (until_failure.load(base::relaxed) >= 0 && until_failure.fetch_sub(1) == 0) return nullptr;
  void* p = alignment <= alignof(std::max_align_t)
                ? std::malloc(size == 0 ? 1 : size)
                : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p != nullptr) {
    ++alive;
    ++made;
  }
  return p;
}
[[maybe_unused]] void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void* p = allocate(size, alignment)) return p;
  throw std::bad_alloc();
}
[[maybe_unused]] void give_back(void* p) noexcept {
  if (p == nullptr) return;
  --alive;
  std::free(p);
}

}  // namespace

#if !defined(WEFT_TSAN)
void* operator new(std::size_t n) { return allocate_or_throw(n, 1); }
void* operator new[](std::size_t n) { return allocate_or_throw(n, 1); }
void* operator new(std::size_t n, std::align_val_t a) { return allocate_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return allocate_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, 1); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, 1); }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { give_back(p); }
void operator delete[](void* p) noexcept { give_back(p); }
void operator delete(void* p, std::size_t) noexcept { give_back(p); }
void operator delete[](void* p, std::size_t) noexcept { give_back(p); }
void operator delete(void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete[](void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give_back(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { give_back(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { give_back(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { give_back(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { give_back(p); }
#endif

namespace {

// Runs `life` with the n-th allocation failing, for n = 0, 1, … until it makes fewer. Whatever happens, all is given back
// when `settled` has returned.
template <class Life, class Settled>
void fails_cleanly_at_every(Life&& life, Settled&& settled) {
  life();  // first uses allocate things that stay
  settled();
  long n = 0;
  std::size_t failures = 0;
  for (; n < 2'000; ++n) {
    const long before = alive.load();
    until_failure = n;
    try {
      life();
    } catch (const std::bad_alloc&) {
      ++failures;
    } catch (const std::system_error&) {  // a thread that could not be had
      ++failures;
    }
    settled();
    const bool reached = until_failure.exchange(-1) < 0;
    ASSERT_EQ(alive.load(), before) << "leaked after the failure of allocation " << n;
    if (!reached) break;
  }
  EXPECT_EQ(failures, static_cast<std::size_t>(n)) << "each failure is somebody's exception";
  EXPECT_GT(n, 2);
}

}  // namespace
