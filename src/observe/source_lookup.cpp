#include "observe/source_lookup.hpp"

#if defined(WEFT_HAS_BACKTRACE)

// The part of <backtrace.h> that we use, under the names that cmake/backtrace.cmake gives to it. The header itself is in
// the directory of g++, where clang does not look.
extern "C" {
struct backtrace_state;
using backtrace_error_callback = void (*)(void* data, const char* message, int error);
using backtrace_full_callback = int (*)(void* data, std::uintptr_t pc, const char* file, int line, const char* name);
using backtrace_syminfo_callback = void (*)(void* data, std::uintptr_t pc, const char* name, std::uintptr_t value,
                                            std::uintptr_t size);
backtrace_state* weft_v1_backtrace_create_state(const char* file, int is_threaded, backtrace_error_callback,
                                                void* data);
int weft_v1_backtrace_pcinfo(backtrace_state*, std::uintptr_t pc, backtrace_full_callback, backtrace_error_callback,
                             void* data);
int weft_v1_backtrace_syminfo(backtrace_state*, std::uintptr_t pc, backtrace_syminfo_callback, backtrace_error_callback,
                              void* data);
}

namespace weft::inline v1::observe {
namespace {

void ignore_error(void*, const char*, int) {}  // no debug information, no file: the caller has other sources

// Never freed: libbacktrace keeps the tables of the program in memory of its own for the rest of the process. The lock of
// symbols.cpp protects it.
constinit backtrace_state* made_state = nullptr;
backtrace_state* program_state() {
  if (made_state == nullptr) made_state = weft_v1_backtrace_create_state(nullptr, 1, &ignore_error, nullptr);
  return made_state;
}

int add_line(void* to, std::uintptr_t, const char* file, int line, const char* name) {
  if (file == nullptr && name == nullptr) return 0;
  symbol s;
  s.function = name != nullptr ? name : "";
  s.file = file != nullptr ? file : "";
  s.line = line;
  static_cast<std::vector<symbol>*>(to)->push_back(std::move(s));
  return 0;
}

}  // namespace

std::vector<symbol> lines_at(std::uintptr_t address) {
  std::vector<symbol> found;
  if (program_state() != nullptr) weft_v1_backtrace_pcinfo(program_state(), address, &add_line, &ignore_error, &found);
  for (std::size_t i = 0; i + 1 < found.size(); ++i) found[i].is_inlined = true;
  return found;
}

std::string symbol_at(std::uintptr_t address) {
  std::string found;
  if (program_state() == nullptr) return found;
  const auto take = [](void* to, std::uintptr_t, const char* name, std::uintptr_t, std::uintptr_t) {
    if (name != nullptr) *static_cast<std::string*>(to) = name;
  };
  weft_v1_backtrace_syminfo(program_state(), address, take, &ignore_error, &found);
  return found;
}

}  // namespace weft::inline v1::observe

#else

namespace weft::inline v1::observe {

std::vector<symbol> lines_at(std::uintptr_t) { return {}; }
std::string symbol_at(std::uintptr_t) { return {}; }

}  // namespace weft::inline v1::observe

#endif
