// Memory of the explorer itself. While a virtual thread runs, operator new belongs to the execution (arena.hpp) and all
// of it vanishes with the execution; what the explorer keeps must therefore come from malloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace explore {

template <class T>
struct host_allocator {
  using value_type = T;
  host_allocator() = default;
  template <class U>
  host_allocator(const host_allocator<U>&) {}
  T* allocate(std::size_t n) {
    void* p = std::malloc(n * sizeof(T));
    if (p == nullptr) std::abort();
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t) { std::free(p); }
  bool operator==(const host_allocator&) const { return true; }
};

template <class T>
using host_vector = std::vector<T, host_allocator<T>>;

// Bump memory that lives as long as one execution.
class scratch {
 public:
  void* take(std::size_t bytes) {
    bytes = (bytes + 15) & ~std::size_t{15};
    while (chunk_ < chunks_.size()) {
      if (used_ + bytes <= chunk_size) {
        void* p = chunks_[chunk_] + used_;
        used_ += bytes;
        return p;
      }
      ++chunk_;
      used_ = 0;
    }
    chunks_.push_back(static_cast<char*>(std::malloc(chunk_size)));
    if (bytes > chunk_size || chunks_.back() == nullptr) std::abort();
    used_ = bytes;
    return chunks_.back();
  }
  void reset() {
    chunk_ = 0;
    used_ = 0;
  }

 private:
  static constexpr std::size_t chunk_size = 256 * 1024;
  host_vector<char*> chunks_;
  std::size_t chunk_ = 0;
  std::size_t used_ = 0;
};

// splitmix64's finalizer over a running value.
inline std::uint64_t mix(std::uint64_t h, std::uint64_t x) {
  h += x + 0x9e3779b97f4a7c15u;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

}  // namespace explore
