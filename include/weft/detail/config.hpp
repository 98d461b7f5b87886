#pragma once

#include <version>

#if __cplusplus < 202002L
#error "Weft needs C++20: -std=c++20"
#elif !defined(__cpp_lib_source_location)
#error "Weft needs std::source_location: g++ 12 or later, clang 16 or later"
#endif

// Every symbol is hidden except those with this mark: what the templates in these headers call, and exception types,
// which must be the same type on both sides of the boundary of a shared library.
#define WEFT_API __attribute__((visibility("default")))
