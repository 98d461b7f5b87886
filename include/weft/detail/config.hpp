#pragma once

#include <version>

#if __cplusplus < 202002L
#error "Weft needs C++20: -std=c++20"
#elif !defined(__cpp_lib_source_location)
#error "Weft needs std::source_location: g++ 12 or later, clang 16 or later"
#endif

// Everything is hidden but what carries this mark: what templates in these headers call, and exception types, which must be
// the same type on both sides of a shared library's edge.
#define WEFT_API __attribute__((visibility("default")))
