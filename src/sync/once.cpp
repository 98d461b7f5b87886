// A mutex for callers that come while the function runs, and a flag for those that come later.
#include <weft/once.hpp>

#include "base/atomic.hpp"
#include "base/mutation.hpp"
#include "sync/mutex.hpp"
#include <weft/errors.hpp>

namespace weft::inline v1 {

namespace {
using done_flag = base::atomic<bool>;
}

bool once_flag::is_done() const noexcept {
  // Pairs with the release in end(): the caller sees what the function did.
  return locks::core_in<const done_flag>(done_).load(base::order<"once.is_done">(base::acquire));
}

bool once_flag::begin(std::source_location where) {
  waits::check_cancelled();
  if (is_done()) return false;
  if (locks::core_in<locks::mutex_core>(doing_).is_held_by(locks::this_owner()))
    detail::throw_usage("call_once is called by the function that it calls: it would wait for itself", where);
  doing_.lock(where);
  if (!base::check<"once.second_look">(is_done())) return true;
  doing_.unlock();
  return false;
}

void once_flag::end(bool done) noexcept {
  // Pairs with the acquire in is_done().
  if (done) locks::core_in<done_flag>(done_).store(true, base::order<"once.end">(base::release));
  base::step<"once.unlock">([&] { doing_.unlock(); });
}

}  // namespace weft::inline v1
