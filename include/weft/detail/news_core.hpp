// What oneshot, broadcast and watch share: a version that grows, an end, the waiters for either, and memory for a typed
// state that is accessed under the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <source_location>
#include <utility>

#include <weft/detail/channel_core.hpp>
#include <weft/detail/config.hpp>
#include <weft/detail/waitable.hpp>

namespace weft::inline v1::chan {

class news;

struct news_state {
  std::size_t size;
  std::size_t alignment;
  void (*destroy)(void* state) noexcept;
};

// One end of each side exists from the start. The caller then constructs the state, or gives the whole object up.
[[nodiscard]] WEFT_API news* make_news(const news_state& s);
WEFT_API void give_up(news* n) noexcept;
[[nodiscard]] WEFT_API void* state_of(news& n) noexcept;
WEFT_API void add_end(news& n, side s) noexcept;
WEFT_API void drop_end(news* n, side s) noexcept;

WEFT_API void lock(news& n) noexcept;
WEFT_API void unlock(news& n) noexcept;
// Called with the lock, and releases it: increments the version and wakes everyone that waits for it.
WEFT_API void announce_and_unlock(news& n) noexcept;
[[nodiscard]] WEFT_API bool has_readers(const news& n) noexcept;  // with the lock

// Ends the versions. Only the first close counts.
WEFT_API void close(news& n, std::exception_ptr why) noexcept;
[[nodiscard]] WEFT_API bool is_closed(const news& n) noexcept;
[[nodiscard]] WEFT_API std::exception_ptr error_of(news& n) noexcept;
[[nodiscard]] WEFT_API std::uint64_t version_of(const news& n) noexcept;

// Waits until the version is above `seen`, or until the end. A cancellation point.
WEFT_API void wait_for_news(news& n, std::uint64_t seen, std::source_location where);

// The same wait as an arm of a select. For a writer it is the wait until there is no reader.
class WEFT_API news_operation final : public waits::waitable {
 public:
  news_operation(news* n, side s) noexcept : news_(n), side_(s) {}
  void aim(std::uint64_t seen) noexcept { seen_ = seen; }

  bool try_complete() noexcept override;
  bool try_locked() noexcept override;
  bool publish(waits::node& n) noexcept override;
  void unpublish(waits::node& n) noexcept override;
  [[nodiscard]] base::lock* own_lock() noexcept override;
  [[nodiscard]] waits::subject what() const noexcept override {
    return {side_ == side::reader ? &news_kind : &death_kind, news_};
  }

  [[nodiscard]] bool enabled() const noexcept { return news_ != nullptr; }
  [[nodiscard]] waits::node& node() noexcept { return node_; }

 private:
  news* news_;
  side side_;
  std::uint64_t seen_ = 0;
  waits::node node_;
};

template <class State, class... Args>
[[nodiscard]] news* make_news_with(Args&&... args) {
  static constexpr news_state layout{sizeof(State), alignof(State),
                                     [](void* s) noexcept { std::destroy_at(static_cast<State*>(s)); }};
  news* n = make_news(layout);
  try {
    ::new (state_of(*n)) State(std::forward<Args>(args)...);
  } catch (...) {
    give_up(n);
    throw;
  }
  return n;
}

class news_guard {
 public:
  explicit news_guard(news& n) noexcept : news_(&n) { lock(n); }
  ~news_guard() {
    if (news_ != nullptr) unlock(*news_);
  }
  news_guard(const news_guard&) = delete;
  news_guard& operator=(const news_guard&) = delete;
  void announce() noexcept { announce_and_unlock(*std::exchange(news_, nullptr)); }

 private:
  news* news_;
};

}  // namespace weft::inline v1::chan
