#include <weft/net/drain_report.hpp>

namespace weft::inline v1::net {
namespace {

std::string text_of(const survivor& s) {
  std::string text = "\n  ";
  if (s.peer.family() != address_family::none) text += s.peer.to_string() + ": ";
  return text + (s.task.id == 0 ? "a task that has not begun to run" : weft::to_string(s.task));
}

}  // namespace

std::string to_string(const drain_report& r) {
  std::string text =
      "drained: " + std::to_string(r.finished) + " finished, " + std::to_string(r.cancelled) + " cancelled";
  if (r.survivors.empty()) return text;
  text += ", " + std::to_string(r.survivors.size()) + " survived";
  for (const survivor& s : r.survivors) text += text_of(s);
  return text;
}

}  // namespace weft::inline v1::net
