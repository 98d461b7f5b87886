#include "base/static_init.hpp"

#include "base/check.hpp"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(WEFT_MODEL)
#define WEFT_NO_GUARD_WATCH 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define WEFT_NO_GUARD_WATCH 1
#endif
#endif

#if defined(WEFT_CHECKED) && !defined(WEFT_NO_GUARD_WATCH)
#include <cxxabi.h>
#include <dlfcn.h>

namespace {

using abi::__guard;
using acquire_function = int (*)(__guard*);
using release_function = void (*)(__guard*);

thread_local int running = 0;

template <class F>
F next_definition(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// The guard functions of the Itanium ABI, which count and forward. In an executable these definitions are found before
// those of libstdc++.
extern "C" {

__attribute__((visibility("default"))) int __cxa_guard_acquire(__guard* guard) {
  static constinit acquire_function real = nullptr;
  if (real == nullptr) real = next_definition<acquire_function>("__cxa_guard_acquire");
  const int first = real(guard);
  if (first != 0) ++running;
  return first;
}
__attribute__((visibility("default"))) void __cxa_guard_release(__guard* guard) noexcept {
  static constinit release_function real = nullptr;
  if (real == nullptr) real = next_definition<release_function>("__cxa_guard_release");
  --running;
  real(guard);
}
__attribute__((visibility("default"))) void __cxa_guard_abort(__guard* guard) noexcept {
  static constinit release_function real = nullptr;
  if (real == nullptr) real = next_definition<release_function>("__cxa_guard_abort");
  --running;
  real(guard);
}

}  // extern "C"

namespace weft::inline v1::base {
[[gnu::noinline]] int static_initializers_running() noexcept {
  asm volatile("" ::: "memory");
  return running;
}
}  // namespace weft::inline v1::base

#else

namespace weft::inline v1::base {
int static_initializers_running() noexcept { return 0; }
}  // namespace weft::inline v1::base

#endif
