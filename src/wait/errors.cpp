#include <weft/errors.hpp>

#include <weft/cancelled.hpp>
#include <weft/detail/task_core.hpp>

namespace weft::inline v1 {

usage_error::usage_error(const std::string& what) : std::logic_error("weft: " + what) {}
usage_error::~usage_error() = default;
runtime_stopped::runtime_stopped()
    : std::runtime_error(
          "weft: the runtime has begun to shut down and takes no more tasks; spawn before, or make a new one") {}
runtime_stopped::~runtime_stopped() = default;
task_cancelled::task_cancelled(std::string_view name, std::uint64_t id)
    : std::runtime_error("weft: the joined task \"" + std::string(name.empty() ? "unnamed" : name) + "\" (#" +
                         std::to_string(id) + ") was cancelled"),
      id_(id),
      name_{} {
  name.copy(name_, sizeof name_ - 1);
}
task_cancelled::~task_cancelled() = default;

namespace detail {

void throw_usage(const char* what) { throw usage_error(what); }
void throw_usage(const char* what, std::source_location where) {
  throw usage_error(std::string(what) + " (" + where.file_name() + ":" + std::to_string(where.line()) + ")");
}

}  // namespace detail
}  // namespace weft::inline v1
