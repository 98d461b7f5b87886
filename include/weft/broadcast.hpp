// A broadcast delivers every value to every reader. A send never waits: a reader that is more than `capacity` values
// behind misses the oldest ones, and is told how many it has missed.
//
//   auto [out, in] = weft::make_broadcast<event>(64);        // broadcast_writer<event>, broadcast_reader<event>
//   auto other = out.subscribe();                            // a reader of what is sent from here on
//   while (std::optional<event> e = in.recv()) if (in.missed() > 0) …
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include <weft/channel.hpp>
#include <weft/detail/news_ends.hpp>

namespace weft::inline v1 {

template <class T>
concept broadcast_element = channel_element<T> && std::copy_constructible<T> && std::swappable<T>;

template <broadcast_element T>
class broadcast_reader;
template <broadcast_element T>
class broadcast_writer;
template <class T>
struct broadcast_ends {
  broadcast_writer<T> out;
  broadcast_reader<T> in;
};
template <broadcast_element T>
[[nodiscard]] broadcast_ends<T> make_broadcast(std::size_t capacity);

namespace detail {

// The newest values. Value number n, counted from 0, is at n % capacity.
template <class T>
struct broadcast_state {
  explicit broadcast_state(std::size_t most) : capacity(most) { newest.reserve(most); }
  const std::size_t capacity;
  std::vector<T> newest;
};

}  // namespace detail

// The sending end. Copies are counted: when the last one is gone, readers receive what is left and then the end.
template <broadcast_element T>
class broadcast_writer : public detail::news_writer {
  using base = detail::news_writer;

 public:
  using value_type = T;
  broadcast_writer() = default;

  // The result is `closed` only after close(). If there is no reader, the value is stored all the same. Never waits;
  // never a cancellation point.
  send_result send(T&& value) {
    chan::news_guard guard(news());
    if (chan::is_closed(news())) return send_status::closed;
    auto& state = *static_cast<detail::broadcast_state<T>*>(chan::state_of(news()));
    if (state.newest.size() < state.capacity) {
      state.newest.push_back(std::move(value));
    } else {
      using std::swap;
      swap(state.newest[chan::version_of(news()) % state.capacity], value);  // the oldest ends with the caller's value
    }
    guard.announce();
    return send_status::sent;
  }
  send_result send(const T& value) { return send(T(value)); }
  // No writer can send anything after this. recv() throws the error, if one is given, after the last value.
  void close(std::exception_ptr error = nullptr) { chan::close(news(), std::move(error)); }

  // Returns a reader of what is sent from now on.
  [[nodiscard]] broadcast_reader<T> subscribe() const {
    chan::add_end(news(), chan::side::reader);
    broadcast_reader<T> r(news_or_null());
    r.next_ = chan::version_of(news());
    return r;
  }

 private:
  using base::base;
  friend broadcast_ends<T> make_broadcast<T>(std::size_t);
};

// A position in the stream. A copy starts at the same position and advances on its own.
template <broadcast_element T>
class broadcast_reader : public detail::news_reader<broadcast_reader<T>, T> {
  using base = detail::news_reader<broadcast_reader<T>, T>;

 public:
  broadcast_reader() = default;
  // How many values this reader has missed between the last two that it received.
  [[nodiscard]] std::uint64_t missed() const noexcept { return missed_; }

 private:
  using base::base;
  friend base;
  friend class detail::arrival_arm<broadcast_reader>;
  friend class broadcast_writer<T>;
  friend broadcast_ends<T> make_broadcast<T>(std::size_t);

  [[nodiscard]] chan::news* source() const noexcept { return this->news_or_null(); }
  [[nodiscard]] std::uint64_t seen() const noexcept { return next_; }
  [[nodiscard]] std::optional<T> take() {
    std::optional<T> got;
    chan::news_guard guard(this->news());
    const auto& state = *static_cast<detail::broadcast_state<T>*>(chan::state_of(this->news()));
    const std::uint64_t end = chan::version_of(this->news());
    if (next_ == end) return got;
    const std::uint64_t oldest = end - state.newest.size();
    const std::uint64_t place = next_ < oldest ? oldest : next_;
    got.emplace(state.newest[place % state.capacity]);
    missed_ = place - next_;
    next_ = place + 1;
    return got;
  }

  std::uint64_t next_ = 0;
  std::uint64_t missed_ = 0;
};

template <broadcast_element T>
broadcast_ends<T> make_broadcast(std::size_t capacity) {
  if (capacity == 0) detail::throw_usage("a broadcast holds at least one value");
  if (capacity > std::size_t{1} << 40) detail::throw_usage("a broadcast holds at most 2^40 values");
  chan::news* n = chan::make_news_with<detail::broadcast_state<T>>(capacity);
  return {broadcast_writer<T>(n), broadcast_reader<T>(n)};
}

}  // namespace weft::inline v1
