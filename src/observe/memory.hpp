// Reads memory that may be gone by the time it is read: the stack of a task that ends, an object that is destroyed.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>

#include "base/cache_line.hpp"

namespace weft::inline v1::observe {

// Copies n bytes of this process. Returns false if they cannot all be read. What others write meanwhile may be copied
// in part. The kernel does the copy, so a missing page is an answer and not a fault, and no sanitizer takes the copy
// for a race.
[[nodiscard]] bool try_copy(void* to, const void* from, std::size_t n) noexcept;

// A copy of the bytes of an object whose constructor and destructor are not called, for functions that read nothing but
// members of it.
template <class T>
class copy_of {
 public:
  explicit copy_of(const void* from) noexcept : is_there_(from != nullptr && try_copy(bytes_, from, sizeof(T))) {}
  copy_of(const copy_of&) = delete;
  copy_of& operator=(const copy_of&) = delete;

  [[nodiscard]] explicit operator bool() const noexcept { return is_there_; }
  [[nodiscard]] const T& operator*() const noexcept { return *std::launder(reinterpret_cast<const T*>(bytes_)); }
  [[nodiscard]] const T* operator->() const noexcept { return &**this; }

 private:
  alignas(alignof(T) > base::cache_line ? alignof(T) : base::cache_line) std::byte bytes_[sizeof(T)];
  bool is_there_;
};

}  // namespace weft::inline v1::observe
