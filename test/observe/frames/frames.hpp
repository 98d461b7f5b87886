// Functions with every kind of frame that a compiler makes, as a fixture that is compiled many times: at several levels of
// optimization, by several compilers (frames.cmake). Each calls a leaf from inside.
#pragma once

#include <cstddef>
#include <span>

namespace frames {

using leaf = void (*)(void* data);

struct scenario {
  const char* name;
  void (*run)(leaf f, void* data);
  bool may_wait;  // the leaf may suspend the task
};

struct variant {
  const char* name;
  std::span<const scenario> scenarios;
  const variant* next;
};

// Called by the constructor of a static object of each variant.
void add(variant& v);

}  // namespace frames
