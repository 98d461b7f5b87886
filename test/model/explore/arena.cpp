#include "explore/arena.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "explore/engine.hpp"
#include "explore/memory.hpp"

namespace explore::arena {
namespace {

constexpr std::size_t heap_size = 16u << 20;  // per thread; committed as used
constexpr std::size_t guard_size = 4096;
constexpr std::size_t stride = heap_size + stack_size + guard_size;
// At a fixed address where possible, so that another process replays the same pointers.
char* const wanted_base = reinterpret_cast<char*>(0x6d0000000000);

enum class mark : std::uint64_t { alive = 0xa11cea11cea11ce5, freed = 0xdeaddeaddeaddead };
struct header {
  std::size_t bytes;
  mark state;
  header* previous;  // all blocks of a thread, newest first
  void* pad;
};

char* base() {
  static char* const memory = [] {
    void* p = mmap(wanted_base, stride * max_threads, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) std::abort();
    char* b = static_cast<char*>(p);
    for (int t = 0; t < max_threads; ++t) mprotect(b + t * stride + heap_size, guard_size, PROT_NONE);
    return b;
  }();
  return memory;
}

std::size_t used[max_threads];
header* newest[max_threads];
std::size_t live;

}  // namespace

void reset() {
  base();
  for (int t = 0; t < max_threads; ++t) {
    used[t] = 0;
    newest[t] = nullptr;
  }
  live = 0;
}

char* stack(int thread) { return base() + thread * stride + heap_size + guard_size; }

void* allocate(int thread, std::size_t bytes, std::size_t alignment) {
  if (alignment < 16) alignment = 16;
  std::size_t at = used[thread] + sizeof(header);
  at = (at + alignment - 1) & ~(alignment - 1);
  if (at + bytes > heap_size) return nullptr;
  char* p = base() + thread * stride + at;
  header* h = reinterpret_cast<header*>(p) - 1;
  *h = {bytes, mark::alive, newest[thread], nullptr};
  newest[thread] = h;
  used[thread] = at + bytes;
  std::memset(p, 0xcd, bytes);
  ++live;
  return p;
}

bool owns(const void* p) {
  const char* c = static_cast<const char*>(p);
  return c >= base() && c < base() + stride * max_threads && !owns_stack(p);
}

bool owns_stack(const void* p) {
  const char* c = static_cast<const char*>(p);
  return c >= base() && c < base() + stride * max_threads && static_cast<std::size_t>(c - base()) % stride >= heap_size;
}

std::size_t release(void* p, const char*& why) {
  header* h = static_cast<header*>(p) - 1;
  if (h->state != mark::alive) {
    why = h->state == mark::freed ? "double free" : "free of what was not allocated";
    return 0;
  }
  h->state = mark::freed;
  --live;
  why = nullptr;
  return h->bytes;
}

std::size_t alive(const void*& example, std::size_t& bytes) {
  if (live == 0) return 0;
  for (int t = 0; t < max_threads; ++t)
    for (header* h = newest[t]; h != nullptr; h = h->previous)
      if (h->state == mark::alive) {
        example = h + 1;
        bytes = h->bytes;
        return live;
      }
  return live;
}

}  // namespace explore::arena

// ---- the global allocation functions of a model test

namespace {

void* get(std::size_t bytes, std::size_t alignment) {
  void* p;
  if (explore::exploring) {
    p = explore::arena::allocate(explore::running_thread(), bytes, alignment);
  } else if (alignment <= 16) {
    p = std::malloc(bytes == 0 ? 1 : bytes);
  } else {
    p = std::aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1));
  }
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

void put(void* p) {
  if (p == nullptr) return;
  if (explore::arena::owns(p))
    explore::freed(p);
  else
    std::free(p);
}

}  // namespace

void* operator new(std::size_t n) { return get(n, 16); }
void* operator new[](std::size_t n) { return get(n, 16); }
void* operator new(std::size_t n, std::align_val_t a) { return get(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return get(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return get(n, 16); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return get(n, 16); }
void operator delete(void* p) noexcept { put(p); }
void operator delete[](void* p) noexcept { put(p); }
void operator delete(void* p, std::size_t) noexcept { put(p); }
void operator delete[](void* p, std::size_t) noexcept { put(p); }
void operator delete(void* p, std::align_val_t) noexcept { put(p); }
void operator delete[](void* p, std::align_val_t) noexcept { put(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { put(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { put(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { put(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { put(p); }
