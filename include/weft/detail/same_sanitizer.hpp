// A sanitizer must be told of every switch of stacks, so a program that is built with one needs a Weft that is built
// with the same one. Otherwise the program does not link, and the linker names the reason.
#pragma once

#include <weft/detail/config.hpp>

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_UNDER_ASAN
#elif defined(__SANITIZE_THREAD__)
#define WEFT_UNDER_TSAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_UNDER_ASAN
#elif __has_feature(thread_sanitizer)
#define WEFT_UNDER_TSAN
#endif
#endif

namespace weft::inline v1::detail {

#if defined(WEFT_UNDER_ASAN)
extern WEFT_API const char this_weft_was_built_without_address_sanitizer;
[[gnu::used]] inline const char* const same_sanitizer = &this_weft_was_built_without_address_sanitizer;
#elif defined(WEFT_UNDER_TSAN)
extern WEFT_API const char this_weft_was_built_without_thread_sanitizer;
[[gnu::used]] inline const char* const same_sanitizer = &this_weft_was_built_without_thread_sanitizer;
#endif

}  // namespace weft::inline v1::detail
