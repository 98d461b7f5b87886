// Channels carry values between tasks, and between tasks and outside threads.
//
//   auto [out, in] = weft::make_channel<int>(16);     // writer<int>, reader<int>
//   (void)out.send(1);                                // waits while the channel is full; false if nobody will receive
//   while (std::optional<int> v = in.recv()) …        // until it is closed and empty
//
// docs/semantics.md says what each operation returns in which case, and whether it is a cancellation point.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include <weft/detail/channel_arms.hpp>
#include <weft/detail/channel_core.hpp>
#include <weft/detail/complete_until.hpp>
#include <weft/errors.hpp>
#include <weft/recv_result.hpp>
#include <weft/timer.hpp>

namespace weft::inline v1 {

// What can be an element of a channel. It is moved in and out.
template <class T>
concept channel_element = std::is_object_v<T> && !std::is_const_v<T> && !std::is_array_v<T> &&
                          std::is_move_constructible_v<T> && std::is_nothrow_destructible_v<T>;

enum class send_status : unsigned char {
  sent,
  closed,  // a writer closed the channel, or nobody will ever receive; the caller keeps the value
  full,  // try_send only
  timed_out,  // send_for and send_until only
};

// True if the value was taken. Whoever ignores it does not notice that nobody receives any more. A loop that sends ends
// by it, `if (!out.send(v)) return;`. A caller that does not care writes `(void)out.send(v);`.
class [[nodiscard("a send fails when nobody will receive")]] send_result {
 public:
  constexpr send_result(send_status s) noexcept : status_(s) {}
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return status_ == send_status::sent; }
  [[nodiscard]] constexpr send_status status() const noexcept { return status_; }
  [[nodiscard]] friend constexpr bool operator==(send_result, send_result) noexcept = default;

 private:
  send_status status_;
};

namespace detail {
struct channel_access;
[[nodiscard]] constexpr send_status send_status_of(chan::status s) noexcept {
  switch (s) {
    case chan::status::done: return send_status::sent;
    case chan::status::would_block: return send_status::full;
    case chan::status::closed:
    case chan::status::pending:
    case chan::status::retry: break;
  }
  return send_status::closed;
}
// `if_none` is the answer for "there was nothing to receive".
[[nodiscard]] constexpr recv_status recv_status_of(chan::status s, recv_status if_none) noexcept {
  if (s == chan::status::done) return recv_status::received;
  return s == chan::status::would_block ? if_none : recv_status::closed;
}
}  // namespace detail

struct channel_statistics {
  std::uint64_t sent = 0, received = 0;
  std::size_t size = 0, waiting_senders = 0, waiting_receivers = 0;
};

template <channel_element T>
class reader;
template <channel_element T>
class writer;

// A channel is made with the number of elements that it buffers (with 0, sender and receiver meet), or with one of
// these.
struct unlimited_t {};
struct conflated_t {};
inline constexpr unlimited_t unlimited{};  // a send never waits
inline constexpr conflated_t conflated{};  // keeps the newest element only and drops the older one; a send never waits

// What is sent to `out` arrives at `in`. Every pair of ends has these two names in this order, seen from the side of
// their user: so do oneshot_ends, broadcast_ends, watch_ends and stream::filter_ends.
template <class T>
struct channel_ends {
  writer<T> out;
  reader<T> in;
};

template <channel_element T>
[[nodiscard]] channel_ends<T> make_channel(std::size_t capacity = 0);
template <channel_element T>
[[nodiscard]] channel_ends<T> make_channel(unlimited_t);
template <channel_element T>
  requires std::is_swappable_v<T>
[[nodiscard]] channel_ends<T> make_channel(conflated_t);

namespace detail {

// A counted end of a channel. It is empty if it was default-constructed or moved from.
template <chan::side Side>
class channel_end {
 public:
  channel_end() = default;
  channel_end(const channel_end& from) noexcept : core_(from.core_) {
    if (core_ != nullptr) chan::add_end(*core_, Side);
  }
  channel_end(channel_end&& from) noexcept : core_(std::exchange(from.core_, nullptr)) {}
  channel_end& operator=(channel_end from) noexcept {
    std::swap(core_, from.core_);
    return *this;
  }
  ~channel_end() {
    if (core_ != nullptr) chan::drop_end(core_, Side);
  }

  // Lets go of the channel, as the destructor does.
  void reset() noexcept { *this = channel_end(); }
  // False for an empty handle, whose arms in a select are disabled.
  [[nodiscard]] explicit operator bool() const noexcept { return core_ != nullptr; }
  [[nodiscard]] friend bool operator==(const channel_end&, const channel_end&) noexcept = default;
  // What a weft::label names.
  [[nodiscard]] friend const void* labelled_object(const channel_end& e) noexcept { return e.core_; }

  // True if the channel admits no more sends. That is also so when nobody is left to receive.
  [[nodiscard]] bool is_closed() const { return chan::is_closed(core()); }
  // Both take constant time, however many tasks wait. The answer was true at some moment during the call.
  [[nodiscard]] std::size_t size() const { return chan::size_of(core()); }
  [[nodiscard]] channel_statistics statistics() const {
    const chan::counts c = chan::counts_of(core());
    return {c.sent, c.received, c.size, c.waiting_senders, c.waiting_receivers};
  }
  // SIZE_MAX for an unlimited channel.
  [[nodiscard]] std::size_t capacity() const { return chan::capacity_of(core()); }
  // The error that the other side gave to close(error); null if it gave none.
  [[nodiscard]] std::exception_ptr close_error() const { return chan::error_of(core(), chan::opposite(Side)); }

 protected:
  explicit channel_end(chan::core* c) noexcept : core_(c) {}
  [[nodiscard]] chan::core& core() const {
    if (core_ == nullptr) throw_usage("this end of a channel is empty: default-constructed, moved from or reset");
    return *core_;
  }
  [[nodiscard]] chan::core* core_or_null() const noexcept { return core_; }
  void close_with(std::exception_ptr why) { chan::close(core(), Side, std::move(why)); }

 private:
  chan::core* core_ = nullptr;
};

}  // namespace detail

// The sending end. Copies are counted: when the last one is gone, the channel is closed for readers.
template <channel_element T>
class writer : public detail::channel_end<chan::side::writer> {
 public:
  using value_type = T;
  writer() = default;

  // Waits until the value is taken or buffered. If it is not taken, it is left as it was. All these sends are
  // cancellation points, except try_send.
  send_result send(T&& value, std::source_location where = std::source_location::current()) const {
    detail::outgoing<T> slot(value);
    return detail::send_status_of(chan::send(core(), slot.address(), where));
  }
  send_result send(const T& value, std::source_location where = std::source_location::current()) const
    requires std::is_copy_constructible_v<T>
  {
    return send(T(value), where);
  }
  // As send(), but waits until that time at the latest; the result is timed_out then.
  send_result send_until(T&& value, std::chrono::steady_clock::time_point when,
                         std::source_location where = std::source_location::current()) const {
    detail::outgoing<T> slot(value);
    chan::send_operation op(&core());
    op.aim(slot.address());
    return detail::complete_until(op, when, where) ? detail::send_status_of(op.result()) : send_status::timed_out;
  }
  send_result send_until(const T& value, std::chrono::steady_clock::time_point when,
                         std::source_location where = std::source_location::current()) const
    requires std::is_copy_constructible_v<T>
  {
    return send_until(T(value), when, where);
  }
  template <class Rep, class Period>
  send_result send_for(T&& value, std::chrono::duration<Rep, Period> time,
                       std::source_location where = std::source_location::current()) const {
    return send_until(std::move(value), detail::time_after(time), where);
  }
  template <class Rep, class Period>
  send_result send_for(const T& value, std::chrono::duration<Rep, Period> time,
                       std::source_location where = std::source_location::current()) const
    requires std::is_copy_constructible_v<T>
  {
    return send_until(T(value), detail::time_after(time), where);
  }
  // Never waits: the result is `full` where send() would wait. Never a cancellation point.
  send_result try_send(T&& value) const {
    detail::outgoing<T> slot(value);
    return detail::send_status_of(chan::try_send(core(), slot.address()));
  }
  send_result try_send(const T& value) const
    requires std::is_copy_constructible_v<T>
  {
    return try_send(T(value));
  }

  // No writer can send anything after this. What is buffered, and what waiting senders hold, is still received. recv()
  // throws the error, if one is given, after the last element.
  void close() { close_with(nullptr); }
  void close(std::exception_ptr error) { close_with(std::move(error)); }

  // Arms for select: a send, and the death of the last reader. `w << v` holds a copy of v. `w << std::move(v)` also
  // holds a copy if T is small and trivially copyable. For every other T it refers to v, which is moved from if and
  // only if this arm wins; such an arm must be written in the call of select itself. An arm that is kept in a variable
  // or a list must be made by on_send(std::move(v)), which holds the value.
  [[nodiscard]] auto operator<<(T&& value) const {
    if constexpr (chan::is_small<T>)
      return send_arm<T>(core_or_null(), std::move(value));
    else
      return detail::passing_send_arm<T>(core_or_null(), value);
  }
  [[nodiscard]] send_arm<T> operator<<(const T& value) const
    requires std::is_copy_constructible_v<T>
  {
    return send_arm<T>(core_or_null(), value);
  }
  [[nodiscard]] death_arm operator~() const { return death_arm(core_or_null(), chan::side::writer); }
  [[nodiscard]] send_arm<T> on_send(T value) const { return send_arm<T>(core_or_null(), std::move(value)); }
  template <class F>
    requires std::invocable<F>
  [[nodiscard]] auto on_send(T value, F f) const {
    return detail::handled_arm(on_send(std::move(value)), std::move(f));
  }
  template <class F>
    requires std::invocable<F>
  [[nodiscard]] auto on_death(F f) const {
    return detail::handled_arm(~*this, std::move(f));
  }

 private:
  explicit writer(chan::core* c) noexcept : detail::channel_end<chan::side::writer>(c) {}
  friend struct detail::channel_access;
};

// The receiving end. Copies share the elements: each element goes to exactly one of them. When the last copy is gone,
// sends fail.
template <channel_element T>
class reader : public detail::channel_end<chan::side::reader> {
 public:
  using value_type = T;
  reader() = default;

  // Waits for an element. The result is empty if the channel is closed and nothing is left. Throws the error that
  // close(error) was given. All these receives are cancellation points, except try_recv.
  [[nodiscard]] std::optional<T> recv(std::source_location where = std::source_location::current()) const {
    std::optional<T> received;
    receive_to(received, where);
    return received;
  }
  // As recv(), but waits until that time at the latest; the status is timed_out then.
  [[nodiscard]] recv_result<T> recv_until(std::chrono::steady_clock::time_point when,
                                          std::source_location where = std::source_location::current()) const {
    return receive_as(recv_status::timed_out, [&](void* slot) {
      chan::receive_operation op(&core());
      op.aim(slot);
      if (!detail::complete_until(op, when, where)) return chan::status::would_block;
      if (op.result() != chan::status::done) throw_if_failed();
      return op.result();
    });
  }
  template <class Rep, class Period>
  [[nodiscard]] recv_result<T> recv_for(std::chrono::duration<Rep, Period> time,
                                        std::source_location where = std::source_location::current()) const {
    return recv_until(detail::time_after(time), where);
  }
  // Never waits: the status is `empty` where recv() would wait. Does not throw the error of close(error). Never a
  // cancellation point.
  [[nodiscard]] recv_result<T> try_recv() const {
    return receive_as(recv_status::empty, [&](void* slot) { return chan::try_receive(core(), slot); });
  }

  // True if the channel is closed and nothing is left: no recv() will return an element any more.
  [[nodiscard]] bool is_drained() const { return chan::is_drained(core()); }

  // No reader will receive anything after this. What is buffered is dropped. Senders get their values back, and learn
  // the reason from close_error().
  void close() { close_with(nullptr); }
  void close(std::exception_ptr error) { close_with(std::move(error)); }

  // Arms for select: a receive, and the close of the channel or the death of the last writer. If the receive wins with
  // a value, the value is assigned to `to`.
  [[nodiscard]] receive_arm<T> operator>>(T& to) const
    requires std::is_move_assignable_v<T>
  {
    return receive_arm<T>(core_or_null(), to);
  }
  [[nodiscard]] receive_arm<T> operator>>(std::optional<T>& to) const { return receive_arm<T>(core_or_null(), to); }
  [[nodiscard]] death_arm operator~() const { return death_arm(core_or_null(), chan::side::reader); }
  // f(T) is called with the value only. f(std::optional<T>) is also called, with an empty optional, when the channel is
  // closed. The error of the close is not thrown; see close_error().
  template <class F>
    requires std::invocable<F, T> || std::invocable<F, std::optional<T>>
  [[nodiscard]] auto on_recv(F f) const {
    return detail::handled_arm(receive_arm<T>(core_or_null()), std::move(f));
  }
  template <class F>
  [[nodiscard, deprecated("its name is on_recv")]] auto on_receive(F f) const {
    return on_recv(std::move(f));
  }
  template <class F>
    requires std::invocable<F>
  [[nodiscard]] auto on_death(F f) const {
    return detail::handled_arm(~*this, std::move(f));
  }

  // `for (T& v : reader)` runs until the channel is closed and empty.
  class iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    iterator() = default;
    explicit iterator(const reader* from) : from_(from) { ++*this; }
    T& operator*() const noexcept { return *value_; }
    T* operator->() const noexcept { return std::addressof(*value_); }
    iterator& operator++() {
      value_.reset();
      from_->receive_to(value_, std::source_location::current());
      return *this;
    }
    void operator++(int) { ++*this; }
    [[nodiscard]] friend bool operator==(const iterator& i, std::default_sentinel_t) noexcept {
      return !i.value_.has_value();
    }

   private:
    const reader* from_ = nullptr;
    mutable std::optional<T> value_;
  };
  [[nodiscard]] iterator begin() const { return iterator(this); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  explicit reader(chan::core* c) noexcept : detail::channel_end<chan::side::reader>(c) {}
  friend struct detail::channel_access;
  template <class Receive>
  [[nodiscard]] static recv_result<T> receive_as(recv_status if_none, Receive&& receive) {
    return detail::recv_access::make<T>(
        [&](std::optional<T>& to) { return detail::recv_status_of(detail::receive_into(to, receive), if_none); });
  }
  void receive_to(std::optional<T>& to, std::source_location where) const {
    (void)detail::receive_into(to, [&](void* slot) {
      const chan::status how = chan::receive(core(), slot, where);
      if (how != chan::status::done) throw_if_failed();
      return how;
    });
  }
  void throw_if_failed() const {
    if (std::exception_ptr e = this->close_error()) std::rethrow_exception(std::move(e));
  }
};

namespace detail {

struct channel_access {
  template <class T>
  static channel_ends<T> make(chan::kind k, std::size_t capacity) {
    chan::core* c = chan::make(chan::element_of<T>, k, capacity);
    return {writer<T>(c), reader<T>(c)};
  }
};

}  // namespace detail

template <channel_element T>
channel_ends<T> make_channel(std::size_t capacity) {
  return detail::channel_access::make<T>(chan::kind::bounded, capacity);
}
template <channel_element T>
channel_ends<T> make_channel(unlimited_t) {
  return detail::channel_access::make<T>(chan::kind::unlimited, SIZE_MAX);
}
template <channel_element T>
  requires std::is_swappable_v<T>
channel_ends<T> make_channel(conflated_t) {
  return detail::channel_access::make<T>(chan::kind::conflated, 1);
}

}  // namespace weft::inline v1
