#include "io/file_error.hpp"

#include <cerrno>
#include <string>

namespace weft::inline v1::io {

[[gnu::noinline]] std::error_code error_of_last_call() noexcept {
  asm volatile("" ::: "memory");
  return {errno, std::generic_category()};
}

void tell(const file_failure& how, std::string_view path, std::error_code* caller) {
  if (caller != nullptr) {
    *caller = how.why;
  } else if (how.why) {
    throw std::system_error(how.why, std::string("weft: ") + how.operation + " \"" + std::string(path) + '"');
  }
}

}  // namespace weft::inline v1::io
