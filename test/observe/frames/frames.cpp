// Compiled with -DVARIANT=name. Everything that is not in the anonymous namespace would be merged with other variants, so
// templates get arguments from there.
#include "frames.hpp"

#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <alloca.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))
#define QUOTED_(x) #x
#define QUOTED(x) QUOTED_(x)

namespace {

using frames::leaf;

volatile int sink;
int opaque(int v) {
  sink = v;
  return sink;
}
template <class T>
void escapes(T* p) {
  asm volatile("" : : "r"(p) : "memory");
}

NOINLINE void plain(leaf f, void* data) {
  f(data);
  sink = sink + 1;  // no tail call, here and below
}

NOINLINE void with_alloca(leaf f, void* data) {
  const int n = opaque(1000);
  auto* room = static_cast<char*>(alloca(static_cast<std::size_t>(n)));
  escapes(room);
  f(data);
  sink = room[n / 2];
}

NOINLINE void realigned(leaf f, void* data) {
  alignas(64) char buffer[192];
  escapes(buffer);
  f(data);
  sink = buffer[1];
}

// Realigned and of a size that is known only at run time: g++ then says by an expression where the frame is.
NOINLINE void realigned_with_alloca(leaf f, void* data) {
  alignas(64) char buffer[64];
  escapes(buffer);
  auto* room = static_cast<char*>(alloca(static_cast<std::size_t>(opaque(300))));
  escapes(room);
  f(data);
  sink = buffer[1] + room[2];
}

NOINLINE int with_many_arguments(int a, int b, int c, int d, int e, int g, int h, int i, double x, leaf f, void* data) {
  realigned(f, data);
  return a + b + c + d + e + g + h + i + static_cast<int>(x);
}
NOINLINE void with_all_registers(leaf f, void* data) {
  int v[12];
  for (int i = 0; i < 12; ++i) v[i] = opaque(i);
  sink = with_many_arguments(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], f, data);
  for (int i = 0; i < 12; ++i) sink = v[i] * sink;
}

NOINLINE int variadic(leaf f, void* data, ...) {
  va_list rest;
  va_start(rest, data);
  const int first = va_arg(rest, int);
  f(data);
  const int second = va_arg(rest, int);
  va_end(rest);
  return first + second;
}
NOINLINE void calls_variadic(leaf f, void* data) { sink = variadic(f, data, opaque(1), 2, 3.0) + 1; }

NOINLINE int recursive(int depth, leaf f, void* data) {
  if (depth == 0) {
    f(data);
    return opaque(1);
  }
  return recursive(depth - 1, f, data) * opaque(depth) + 1;
}
NOINLINE void deep(leaf f, void* data) { sink = recursive(50, f, data); }

NOINLINE void large_frame(leaf f, void* data) {
  char large[40'000];
  escapes(large);
  plain(f, data);
  sink = large[opaque(5)];
}

struct thrown {
  int value;
};
NOINLINE void throws(int v) {
  const std::string local(static_cast<std::size_t>(opaque(40)), 'x');
  if (opaque(v) != 0) throw thrown{v};
  sink = static_cast<int>(local.size());
}
NOINLINE void in_catch(leaf f, void* data) {
  const std::string before(static_cast<std::size_t>(opaque(50)), 'y');
  try {
    throws(1);
  } catch (const thrown& t) {
    f(data);
    sink = t.value;
  }
  sink = static_cast<int>(before.size());
}
NOINLINE void in_catch_in_catch(leaf f, void* data) {
  try {
    throws(1);
  } catch (const thrown& outer) {
    try {
      throws(2);
    } catch (const thrown& inner) {
      realigned_with_alloca(f, data);
      sink = inner.value;
    }
    sink = outer.value;
  }
}

// Inside of the unwinder itself: its frames end in a jump that no call instruction returns from.
struct calls_at_end {
  leaf f;
  void* data;
  NOINLINE ~calls_at_end() { f(data); }
};
NOINLINE void throws_past(leaf f, void* data) {
  calls_at_end c{f, data};
  escapes(&c);
  throws(3);
}
NOINLINE void in_destructor_while_thrown(leaf f, void* data) {
  try {
    throws_past(f, data);
  } catch (const thrown& t) {
    sink = t.value;
  }
}

// The call is the last instruction of the function: its return address belongs to the next one.
struct leave {};
[[noreturn]] NOINLINE void does_not_return(leaf f, void* data) {
  f(data);
  throw leave();
}
NOINLINE void ends_with_a_call(leaf f, void* data) {
  if (opaque(1) == 1) does_not_return(f, data);
  sink = 2;
}
NOINLINE void last_instruction(leaf f, void* data) {
  try {
    ends_with_a_call(f, data);
  } catch (const leave&) {
    sink = 1;
  }
}

__attribute__((cold, noinline)) void cold_part(leaf f, void* data) {
  f(data);
  sink = 9;
}
NOINLINE void hot_and_cold(leaf f, void* data) {
  for (int i = 0; i < 3; ++i) {
    if (__builtin_expect(opaque(i) == 2, 0)) {
      cold_part(f, data);
      std::string s(static_cast<std::size_t>(opaque(30)), 'z');
      f(data);
      sink = static_cast<int>(s.size());
    }
  }
}

template <int N>
struct nested {
  template <class F>
  NOINLINE static int call(F&& g) {
    char room[8 + N * 24];
    escapes(room);
    if constexpr (N == 0) {
      g();
      return room[0];
    } else {
      return nested<N - 1>::call(g) + room[opaque(1)];
    }
  }
};
NOINLINE void templates(leaf f, void* data) {
  sink = nested<6>::call([&] {
    f(data);
    sink = 3;
  });
}

struct base {
  virtual ~base() = default;
  virtual void call(leaf f, void* data) = 0;
};
struct derived final : base {
  void call(leaf f, void* data) override {
    alignas(32) char buffer[32];
    escapes(buffer);
    f(data);
    sink = buffer[0];
  }
};
NOINLINE void virtual_call(leaf f, void* data) {
  std::unique_ptr<base> object = std::make_unique<derived>();
  escapes(object.get());
  object->call(f, data);
}
NOINLINE void through_function(leaf f, void* data) {
  std::function<void(int)> g = [f, data](int v) {
    f(data);
    sink = v;
  };
  escapes(&g);
  g(opaque(4));
}

// From another object, through its linkage table, back to here.
struct order {
  leaf f;
  void* data;
  bool is_done;
};
order* sorting;
NOINLINE int compare(const void* a, const void* b) {
  if (!sorting->is_done) {
    sorting->is_done = true;
    sorting->f(sorting->data);
  }
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}
NOINLINE void in_qsort(leaf f, void* data) {
  order o{f, data, false};
  sorting = &o;
  int values[] = {5, 2, 8, 1, 9};
  qsort(values, 5, sizeof(int), &compare);
  sink = values[0];
}
NOINLINE void in_std_sort(leaf f, void* data) {
  bool is_done = false;
  std::vector<int> values{5, 2, 8, 1, 9, opaque(3)};
  std::sort(values.begin(), values.end(), [&](int a, int b) {
    if (!is_done) f(data);
    is_done = true;
    return a < b;
  });
  sink = values[0];
}

leaf in_handler;
void* data_in_handler;
void handle(int) {
  in_handler(data_in_handler);
  sink = 11;
}
template <class Raise>
void with_handler(int number, leaf f, void* data, Raise raise_it) {
  in_handler = f;
  data_in_handler = data;
  struct sigaction act{}, before;
  act.sa_handler = &handle;
  sigaction(number, &act, &before);
  raise_it();
  sigaction(number, &before, nullptr);
}
NOINLINE void in_signal_handler(leaf f, void* data) {
  with_handler(SIGUSR1, f, data, [] { raise(SIGUSR1); });
}
#if defined(__x86_64__)
NOINLINE void in_trap(leaf f, void* data) {
  with_handler(SIGTRAP, f, data, [] { asm volatile("int3"); });
}
#endif

// ---- the list

constexpr frames::scenario all[] = {
    {"plain", &plain, true},
    {"with_alloca", &with_alloca, true},
    {"realigned", &realigned, true},
    {"realigned_with_alloca", &realigned_with_alloca, true},
    {"with_all_registers", &with_all_registers, true},
    {"calls_variadic", &calls_variadic, true},
    {"deep", &deep, true},
    {"large_frame", &large_frame, true},
    {"in_catch", &in_catch, true},
    {"in_catch_in_catch", &in_catch_in_catch, true},
    {"in_destructor_while_thrown", &in_destructor_while_thrown, true},
    {"last_instruction", &last_instruction, true},
    {"hot_and_cold", &hot_and_cold, true},
    {"templates", &templates, true},
    {"virtual_call", &virtual_call, true},
    {"through_function", &through_function, true},
    {"in_qsort", &in_qsort, false},  // one at a time
    {"in_std_sort", &in_std_sort, true},
    {"in_signal_handler", &in_signal_handler, false},
#if defined(__x86_64__)
    {"in_trap", &in_trap, false},
#endif
};

frames::variant self{QUOTED(VARIANT), all, nullptr};
[[maybe_unused]] const bool is_added = (frames::add(self), true);

}  // namespace
