// From the name of a file to that of the result.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weftgz {

// The suffix by which a name says that the file is compressed; empty if it does not.
[[nodiscard]] std::string_view suffix_of(std::string_view name, std::string_view own_suffix) noexcept;

// Nothing if the name has no suffix to take away. "a.tgz" becomes "a.tar".
[[nodiscard]] std::optional<std::string> decompressed_name(std::string_view name, std::string_view own_suffix);

[[nodiscard]] std::string_view last_part(std::string_view path) noexcept;
// `name`, which came from a header and may be anything, beside `path`: only its last part counts. Nothing if that is no
// name of a file.
[[nodiscard]] std::optional<std::string> beside(std::string_view path, std::string_view name);

}  // namespace weftgz
