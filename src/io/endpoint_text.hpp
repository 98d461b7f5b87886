// Addresses as text: what parse() accepts, and why it refuses the rest. Nothing here throws for bad text, so that
// parse() and try_parse() read in the same way.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::inline v1::io {

// What is wrong with a text.
enum class text_flaw : std::uint8_t {
  none,
  no_port,
  bad_port,
  no_brackets,
  bad_brackets,
  bad_v4,
  bad_v6,
  no_such_interface,
  empty_path,
  zero_in_path,
  path_too_long,
};
[[nodiscard]] const char* explanation_of(text_flaw why) noexcept;

using v4_bytes = std::array<std::uint8_t, 4>;
struct v6_text {
  std::array<std::uint8_t, 16> bytes = {};
  std::uint32_t scope_id = 0;
};

[[nodiscard]] text_flaw read_v4(std::string_view text, v4_bytes& to) noexcept;
// With or without a scope. The name of an interface is looked up in the kernel.
[[nodiscard]] text_flaw read_v6(std::string_view text, v6_text& to) noexcept;
[[nodiscard]] text_flaw read_port(std::string_view text, std::uint16_t& to) noexcept;
[[nodiscard]] text_flaw flaw_of_path(std::string_view path) noexcept;
[[nodiscard]] text_flaw flaw_of_abstract(std::string_view name) noexcept;

// An endpoint cut into its parts. The address is not looked at yet.
enum class endpoint_form : std::uint8_t { v4, v6, path, abstract };
struct endpoint_parts {
  endpoint_form form = endpoint_form::v4;
  std::string_view address;
  std::uint16_t port = 0;
};
[[nodiscard]] text_flaw split_endpoint(std::string_view text, endpoint_parts& to) noexcept;

// The text with every byte that is not printable as \xNN. Bytes of UTF-8 stay as they are.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace weft::inline v1::io
