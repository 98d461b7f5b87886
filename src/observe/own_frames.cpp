// Which frames of a stack are Weft's own, by name and by file.
#include <string_view>

#include "observe/symbols.hpp"

namespace weft::inline v1::observe {
namespace {

// The name of a function without what stands before and after it: "void a::b<int>(int) const" gives "a::b<int>".
// Templates have a return type in their text, other functions have none.
std::string_view qualified_name(std::string_view text) {
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    const char c = text[i];
    if (depth == 0) {
      if (rest.starts_with("operator")) return text.substr(begin);  // its signs are no brackets
      if (rest.starts_with("(anonymous namespace)")) {
        i += std::string_view("(anonymous namespace)").size() - 1;
        continue;
      }
      if (c == ' ') begin = i + 1;
      const bool is_type = text.substr(0, i).ends_with("decltype") || text.substr(0, i).ends_with("decltype ");
      if (c == '(' && !is_type) return text.substr(begin, i - begin);
    }
    if (c == '<' || c == '(' || c == '[' || c == '{') ++depth;
    if ((c == '>' && (i == 0 || text[i - 1] != '-')) || c == ')' || c == ']' || c == '}') --depth;
  }
  return text.substr(begin);
}

// The directory of the project, if the library was built from it; ends with a slash.
std::string_view source_directory() {
  constexpr std::string_view here = __FILE__;
  [[maybe_unused]] constexpr std::string_view own = "src/observe/own_frames.cpp";
  static_assert(here.ends_with(own));
  return here.substr(0, here.size() - own.size());
}

// An inlined function has its plain name only, so the file must tell.
bool is_file_of_weft(std::string_view file) {
  if (file.find("/include/weft/") != file.npos) return true;
  const auto directory = source_directory();
  return !directory.empty() && file.starts_with(directory) && file.substr(directory.size()).starts_with("src/");
}

// What the standard library puts between Weft and the function of the user.
bool is_call_wrapper(std::string_view name) {
  for (const auto* wrapper :
       {"std::__invoke", "std::invoke", "std::apply", "std::__apply", "std::_Function_handler", "std::function<",
        "std::__call", "std::move_only_function", "__invoke", "invoke", "apply"}) {
    if (name.starts_with(wrapper)) return true;
  }
  return false;
}

bool is_of_std(const symbol& s) {
  return s.file.find("/include/c++/") != s.file.npos || qualified_name(s.function).starts_with("std::");
}

}  // namespace

bool is_weft_internal(const symbol& s) {
  const std::string_view name = qualified_name(s.function);
  if (name.starts_with("weft::") || name.starts_with("weft_v1_")) return true;
  return is_file_of_weft(s.file);
}

std::span<const symbol> without_weft(std::span<const symbol> stack) {
  const auto all = stack;
  // Outer end. Wrappers of std go only with frames of Weft outside of them: a thread's own frames stay.
  bool seen = false;
  while (!stack.empty()) {
    const symbol& last = stack.back();
    const bool is_own = is_weft_internal(last);
    if (!is_own && !(seen && is_of_std(last) && is_call_wrapper(qualified_name(last.function)))) break;
    seen = seen || is_own;
    stack = stack.first(stack.size() - 1);
  }
  // Inner end. A function of std that Weft's wait called, or that was inlined into it, goes with it.
  std::size_t own = 0;
  for (std::size_t i = 0; i < stack.size() && (is_weft_internal(stack[i]) || is_of_std(stack[i])); ++i) {
    if (is_weft_internal(stack[i])) own = i + 1;
  }
  stack = stack.subspan(own);
  return stack.empty() ? all : stack;
}

}  // namespace weft::inline v1::observe
