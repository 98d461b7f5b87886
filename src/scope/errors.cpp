#include <weft/scope_errors.hpp>

#include <string>
#include <utility>

namespace weft::inline v1 {
namespace {

std::string text_of(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

std::string summary(const std::vector<std::exception_ptr>& all) {
  std::string text =
      "weft: " + std::to_string(all.size()) + (all.size() == 1 ? " task" : " tasks") + " of a scope failed";
  if (!all.empty()) text += "; the first: " + text_of(all.front());
  return text;
}

}  // namespace

scope_closed::scope_closed()
    : std::runtime_error("weft: the scope has ended and takes no more tasks; what was to be spawned was not run") {}
scope_closed::~scope_closed() = default;

scope_cancelled::scope_cancelled()
    : std::runtime_error(
          "weft: the scope was cancelled (cancel(), deadline or stop_token) before its body had a result") {}
scope_cancelled::scope_cancelled(const char* what) : std::runtime_error(what) {}
scope_cancelled::~scope_cancelled() = default;

scope_failures::scope_failures(std::vector<std::exception_ptr> all)
    : std::runtime_error(summary(all)),
      all_(std::make_shared<const std::vector<std::exception_ptr>>(std::move(all))) {}
scope_failures::~scope_failures() = default;

}  // namespace weft::inline v1
