// The errors of getaddrinfo as a category.
#include <netdb.h>

#include <string>
#include <system_error>

#include "io/resolve.hpp"

namespace weft::inline v1 {

namespace net {
namespace {

constexpr int code_of(resolve_errc e) noexcept { return static_cast<int>(e); }
static_assert(code_of(resolve_errc::not_found) == EAI_NONAME && code_of(resolve_errc::try_again) == EAI_AGAIN &&
              code_of(resolve_errc::failed) == EAI_FAIL && code_of(resolve_errc::no_address) == EAI_NODATA &&
              code_of(resolve_errc::unknown_service) == EAI_SERVICE &&
              code_of(resolve_errc::no_address_of_family) == EAI_ADDRFAMILY);

class category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "weft.resolve"; }
  [[nodiscard]] std::string message(int code) const override { return ::gai_strerror(code); }
  [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
    switch (code) {
      case EAI_AGAIN: return std::errc::resource_unavailable_try_again;
      case EAI_MEMORY: return std::errc::not_enough_memory;
      case EAI_FAMILY:
      case EAI_ADDRFAMILY: return std::errc::address_family_not_supported;
      default: return {code, *this};
    }
  }
};

}  // namespace

const std::error_category& resolve_category() noexcept {
  static const category only;
  return only;
}

}  // namespace net

std::error_code io::resolve_error(int code, int number) noexcept {
  if (code == EAI_SYSTEM) return {number, std::system_category()};
  return {code, net::resolve_category()};
}

}  // namespace weft::inline v1
