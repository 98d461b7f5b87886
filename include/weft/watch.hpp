// A value that changes, for readers that want the newest version and not every version.
//
//   auto [out, in] = weft::make_watch(config());             // watch_writer<config>, watch_reader<config>
//   (void)out.send(reload());
//   while (std::optional<config> c = in.recv()) …            // waits for a version it has not seen
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

#include <weft/broadcast.hpp>
#include <weft/detail/news_ends.hpp>

namespace weft::inline v1 {

template <broadcast_element T>
class watch_reader;
template <broadcast_element T>
class watch_writer;
template <class T>
struct watch_ends {
  watch_writer<T> out;
  watch_reader<T> in;
};
// The initial value is version 0, and readers count it as seen.
template <broadcast_element T>
[[nodiscard]] watch_ends<T> make_watch(T initial);

namespace detail {

template <class T>
[[nodiscard]] const T& watched_value(chan::news& n) noexcept {
  return *static_cast<T*>(chan::state_of(n));
}

}  // namespace detail

// The sending end. Copies are counted: when the last one is gone, readers receive the newest value if they have not
// seen it, and then the end.
template <broadcast_element T>
class watch_writer : public detail::news_writer {
  using base = detail::news_writer;

 public:
  using value_type = T;
  watch_writer() = default;

  // The result is `closed` only after close(). Never waits; never a cancellation point.
  send_result send(T&& value) {
    chan::news_guard guard(news());
    if (chan::is_closed(news())) return send_status::closed;
    using std::swap;
    swap(*static_cast<T*>(chan::state_of(news())), value);  // the old value ends with the caller's
    guard.announce();
    return send_status::sent;
  }
  send_result send(const T& value) { return send(T(value)); }
  // No writer can send another version after this. recv() throws the error, if one is given, after the last version has
  // been seen.
  void close(std::exception_ptr error = nullptr) { chan::close(news(), std::move(error)); }

  [[nodiscard]] T get() const {
    chan::news_guard guard(news());
    return detail::watched_value<T>(news());
  }
  [[nodiscard]] std::uint64_t version() const { return chan::version_of(news()); }
  // Returns a reader that has seen the present version.
  [[nodiscard]] watch_reader<T> subscribe() const {
    chan::add_end(news(), chan::side::reader);
    watch_reader<T> r(news_or_null());
    r.seen_ = version();
    return r;
  }

 private:
  using base::base;
  friend watch_ends<T> make_watch<T>(T);
};

// Remembers which version it has seen. A copy starts from the same version.
template <broadcast_element T>
class watch_reader : public detail::news_reader<watch_reader<T>, T> {
  using base = detail::news_reader<watch_reader<T>, T>;

 public:
  watch_reader() = default;

  // Returns the newest value, whether it was seen before or not, and counts it as seen. Never waits; never a
  // cancellation point.
  [[nodiscard]] T get() {
    chan::news_guard guard(this->news());
    seen_ = chan::version_of(this->news());
    return detail::watched_value<T>(this->news());
  }
  // True if recv() would return a value without waiting.
  [[nodiscard]] bool has_changed() const { return version() > seen_; }
  [[nodiscard]] std::uint64_t version() const { return chan::version_of(this->news()); }  // of the newest value
  [[nodiscard]] std::uint64_t seen_version() const noexcept { return seen_; }

 private:
  using base::base;
  friend base;
  friend class detail::arrival_arm<watch_reader>;
  friend class watch_writer<T>;
  friend watch_ends<T> make_watch<T>(T);

  [[nodiscard]] chan::news* source() const noexcept { return this->news_or_null(); }
  [[nodiscard]] std::uint64_t seen() const noexcept { return seen_; }
  [[nodiscard]] std::optional<T> take() {
    std::optional<T> got;
    chan::news_guard guard(this->news());
    const std::uint64_t newest = chan::version_of(this->news());
    if (newest == seen_) return got;
    got.emplace(detail::watched_value<T>(this->news()));
    seen_ = newest;
    return got;
  }

  std::uint64_t seen_ = 0;
};

template <broadcast_element T>
watch_ends<T> make_watch(T initial) {
  chan::news* n = chan::make_news_with<T>(std::move(initial));
  return {watch_writer<T>(n), watch_reader<T>(n)};
}

}  // namespace weft::inline v1
