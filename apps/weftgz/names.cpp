#include <weftgz/names.hpp>

namespace weftgz {
namespace {

constexpr std::string_view known[] = {".gz", "-gz", ".z", "-z", "_z", ".tgz", ".taz"};

bool ends_with_suffix(std::string_view path, std::string_view suffix) noexcept {
  const std::string_view name = last_part(path);
  return name.size() > suffix.size() && name.ends_with(suffix);  // ".gz" alone is a name
}

}  // namespace

std::string_view last_part(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view suffix_of(std::string_view name, std::string_view own_suffix) noexcept {
  if (ends_with_suffix(name, own_suffix)) return name.substr(name.size() - own_suffix.size());
  for (const std::string_view s : known)
    if (ends_with_suffix(name, s)) return s;
  return {};
}

std::optional<std::string> decompressed_name(std::string_view name, std::string_view own_suffix) {
  const std::string_view suffix = suffix_of(name, own_suffix);
  if (suffix.empty()) return std::nullopt;
  std::string result(name.substr(0, name.size() - suffix.size()));
  if (suffix != own_suffix && (suffix == ".tgz" || suffix == ".taz")) result += ".tar";
  return result;
}

std::optional<std::string> beside(std::string_view path, std::string_view name) {
  const std::string_view last = last_part(name);
  if (last.empty() || last == "." || last == "..") return std::nullopt;
  return std::string(path.substr(0, path.size() - last_part(path).size())) + std::string(last);
}

}  // namespace weftgz
