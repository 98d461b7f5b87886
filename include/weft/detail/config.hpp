#pragma once

#if __cplusplus < 202002L
#error "Weft needs C++20: -std=c++20"
#endif

// Everything is hidden but what carries this mark: what templates in these headers call, and exception types, which must be
// the same type on both sides of a shared library's edge.
#define WEFT_API __attribute__((visibility("default")))
