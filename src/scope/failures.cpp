#include "scope/failures.hpp"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <cstring>

#include "sched/scheduler.hpp"
#include <weft/scope_errors.hpp>

namespace weft::inline v1::detail {
namespace {

// If the body or a child joins a child that failed, and lets its exception out, it throws the same exception again. It
// is kept only where it came first. The exceptions are sorted by address, since comparing each with each would take
// long for many.
void drop_repeated(std::vector<std::exception_ptr>& all) {
  if (all.size() == 1) return;
  struct entry {
    std::uintptr_t exception;
    std::size_t place;
    auto operator<=>(const entry&) const = default;
  };
  std::vector<entry> sorted(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    static_assert(sizeof(std::exception_ptr) == sizeof(std::uintptr_t));  // it has no order and no hash
    // NOLINTNEXTLINE(bugprone-undefined-memory-manipulation): only its bytes are wanted
    std::memcpy(&sorted[i].exception, &all[i], sizeof sorted[i].exception);
    sorted[i].place = i;
  }
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i].exception == sorted[i - 1].exception) all[sorted[i].place] = nullptr;
  std::erase(all, nullptr);
}

}  // namespace

kept_failures::~kept_failures() {
  drop(first_);
  for (failure& one : all_) drop(one);
}

void kept_failures::drop(failure& one) noexcept {
  if (one.by != nullptr) sched::drop_reference(std::exchange(one.by, nullptr));
}

bool kept_failures::note(std::exception_ptr& why, task::record* by) noexcept {
  if (policy_ != failures::collect && first_.error != nullptr && first_.error != why) return true;
  if (by != nullptr) sched::add_reference(by);
  if (policy_ == failures::collect) {
    all_.push_back({std::move(why), by});  // there is room, see make_room()
    return false;
  }
  // Here `why` is the first exception again, from a task that joined the first one and let its exception out. The
  // exception is lost only if it is lost at this task as well, so this task replaces the first.
  drop(first_);
  first_ = {std::move(why), by};
  return true;
}

std::exception_ptr kept_failures::take() {
  if (all_.empty()) return std::exchange(first_.error, nullptr);
  std::vector<std::exception_ptr> errors;
  errors.reserve(all_.size());
  for (const failure& one : all_) errors.push_back(one.error);
  drop_repeated(errors);
  return std::make_exception_ptr(scope_failures(std::move(errors)));
}

}  // namespace weft::inline v1::detail
