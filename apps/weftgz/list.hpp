// The lines of -l, in gzip's form. Sizes and CRC are sums over all members.
#pragma once

#include <optional>
#include <string>

#include <weft/fs.hpp>

#include <weftgz/decompress.hpp>
#include <weftgz/header.hpp>

namespace weftgz {

// Goes from header to header by the lengths that they hold, and reads nothing between. Nothing if a member does not say
// how long it is, or anything is wrong: then only decompressing tells.
[[nodiscard]] std::optional<decompressed> sums_of_sized_members(const weft::fs::file& f);

// The first header of a file; nothing if there is none.
[[nodiscard]] std::optional<header> first_header(const weft::fs::file& f);

void print_list_head(bool verbose);
void print_list_line(const decompressed& d, const std::string& name, std::uint32_t modified, bool verbose);
void print_list_totals(const totals& t, bool verbose);

[[nodiscard]] double percent_saved(const totals& t) noexcept;

}  // namespace weftgz
