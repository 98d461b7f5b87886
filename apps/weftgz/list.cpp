#include <weftgz/list.hpp>

#include <array>
#include <cstdio>
#include <ctime>

#include <weftgz/failure.hpp>

namespace weftgz {
namespace {

// Reads the header at that place. Nothing if there is none, or one that is longer than anybody makes them.
std::optional<header> header_at(const weft::fs::file& f, std::uint64_t offset) {
  std::array<std::byte, 8192> start;
  std::error_code why;
  const std::size_t n = f.read_at(start, offset, why);
  if (why || n < 2 || start[0] != std::byte{0x1f} || start[1] != std::byte{0x8b}) return std::nullopt;
  std::size_t at = 2;
  try {
    return read_header([&] { return at < n ? std::to_integer<int>(start[at++]) : -1; });
  } catch (const bad_input&) {
    return std::nullopt;
  }
}

void print_line(const totals& t, const char* name) {
  std::printf("%19llu %19llu %5.1f%% %s\n", static_cast<unsigned long long>(t.packed),
              static_cast<unsigned long long>(t.plain), percent_saved(t), name);
}

}  // namespace

std::optional<header> first_header(const weft::fs::file& f) { return header_at(f, 0); }

std::optional<decompressed> sums_of_sized_members(const weft::fs::file& f) {
  std::error_code why;
  const std::uint64_t size = f.size(why);
  if (why || size == 0) return std::nullopt;
  decompressed sum;
  while (sum.packed < size) {
    const std::optional<header> h = header_at(f, sum.packed);
    if (!h || !h->member_size || *h->member_size < h->size + trailer_size) return std::nullopt;
    std::array<std::byte, trailer_size> eight;
    sum.packed += *h->member_size;
    if (sum.packed > size || f.read_at(eight, sum.packed - eight.size(), why) != eight.size()) return std::nullopt;
    const trailer end = read_trailer(eight);
    sum.plain += end.length;
    sum.crc = crc_combined(sum.crc, end.crc, end.length);
  }
  return sum;
}

double percent_saved(const totals& t) noexcept {
  if (t.plain == 0) return 0;
  return 100.0 - 100.0 * static_cast<double>(t.packed) / static_cast<double>(t.plain);
}

void print_list_head(bool verbose) {
  if (verbose) std::fputs("method  crc     date  time  ", stdout);
  std::puts("         compressed        uncompressed  ratio uncompressed_name");
}

void print_list_line(const decompressed& d, const std::string& name, std::uint32_t modified, bool verbose) {
  if (verbose) {
    char date[32] = "";
    const std::time_t t = modified;
    std::tm parts{};
    if (localtime_r(&t, &parts) != nullptr) std::strftime(date, sizeof date, "%b %e %H:%M", &parts);
    std::printf("defla %08x %-13s ", static_cast<unsigned>(d.crc), date);
  }
  print_line(d, name.c_str());
}

void print_list_totals(const totals& t, bool verbose) {
  if (verbose) std::printf("%*s", 28, "");
  print_line(t, "(totals)");
}

}  // namespace weftgz
