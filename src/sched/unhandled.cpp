#include <cxxabi.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <typeinfo>

#include "sched/scheduler.hpp"
#include "task/name.hpp"

namespace weft::inline v1::sched {
namespace {

// Called in a catch block. Returns what() of a std::exception, and otherwise the name of the type.
std::string say_current_exception() {
  try {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    if (type == nullptr) return "an exception of another language";
    int failed = 0;
    char* readable = abi::__cxa_demangle(type->name(), nullptr, nullptr, &failed);
    std::string text = "an exception of type " + std::string(failed == 0 ? readable : type->name()) +
                       ", which is not a std::exception";
    std::free(readable);  // NOLINT(cppcoreguidelines-no-malloc): that is how it was made
    return text;
  }
}

std::string say(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (...) {
    return say_current_exception();
  }
}

}  // namespace

const char* printed_name(const record& ended) noexcept {
  const std::string_view own = task::own_name(ended);  // nobody renames it any more
  return own.empty() ? "unnamed" : own.data();
}

bool tell_handler(const record& t, const std::exception_ptr& error) noexcept {
  const auto& handler = task::origin_of(t).on_unhandled;  // the origin's copy, because a handle may outlive the runtime
  if (!handler) return false;
  try {
    handler(printed_name(t), error);
  } catch (...) {
    std::fprintf(stderr, "weft: runtime_options::on_unhandled_exception itself threw, for task \"%s\" (#%llu): %s\n",
                 printed_name(t), static_cast<unsigned long long>(t.id.load(base::relaxed)),
                 say_current_exception().c_str());
    std::terminate();
  }
  return true;
}

void report_unhandled(const record& t, const std::exception_ptr& error) noexcept {
  if (tell_handler(t, error)) return;
  const char* name = printed_name(t);
  const auto id = static_cast<unsigned long long>(t.id.load(base::relaxed));
  const std::string what = say(error);
  if (t.word.is_forgiven()) {
    std::fprintf(stderr,
                 "weft: task \"%s\" (#%llu), which nobody joins because another exception or a cancellation came "
                 "before, ended with: %s\n",
                 name, id, what.c_str());
    return;
  }
  base::failf(
      "task \"%s\" (#%llu) ended with an exception that nobody takes: %s\n  keep its join_handle and join() it, or "
      "join() its task_group, or set runtime_options::on_unhandled_exception",
      name, id, what.c_str());
}

}  // namespace weft::inline v1::sched
