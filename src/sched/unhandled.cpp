#include <string>
#include <string_view>

#include "sched/scheduler.hpp"
#include "task/name.hpp"

namespace weft::inline v1::sched {

void report_unhandled(const record& t, std::exception_ptr error) noexcept {
  const std::string_view own = task::own_name(t);  // ended: nobody renames it any more
  const std::string_view name = own.empty() ? "unnamed" : own;
  // From the pool, not the runtime: a handle may outlive its runtime.
  if (const auto& handler = task::slab::of(&t)->pool->on_unhandled) {
    handler(name, error);
    return;
  }
  std::string what = "an exception that is not a std::exception";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {}
  base::failf(
      "task \"%.*s\" (#%llu) ended with an exception that nobody takes: %s\n  keep its join_handle and join() it, or "
      "set "
      "runtime_options::on_unhandled_exception",
      static_cast<int>(name.size()), name.data(), static_cast<unsigned long long>(t.id), what.c_str());
}

}  // namespace weft::inline v1::sched
