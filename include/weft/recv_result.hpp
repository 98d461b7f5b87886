// The result of a receive that does not wait for ever: an element, or the reason why there is none. It can be used as a
// std::optional<T>.
//
//   if (weft::recv_result<int> got = in.recv_for(50ms)) …                    // *got
//   else if (got.status() == weft::recv_status::timed_out) …                 // otherwise the channel is closed
//   std::optional<int> v = in.try_recv();                                    // for a caller that does not ask why
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

namespace weft::inline v1 {

enum class recv_status : unsigned char {
  received,
  closed,  // and nothing is left, so nothing will ever be received
  empty,  // try_recv only: there is nothing now
  timed_out,  // recv_for and recv_until only
};

template <class T>
class recv_result;

namespace detail {

struct recv_access;

// Types that a recv_result compares with as a whole. Every other type is compared with the element.
template <class U>
inline constexpr bool is_whole_result = std::same_as<U, recv_status> || std::same_as<U, std::nullopt_t>;
template <class U>
inline constexpr bool is_whole_result<std::optional<U>> = true;
template <class U>
inline constexpr bool is_whole_result<recv_result<U>> = true;

}  // namespace detail

template <class T>
class [[nodiscard]] recv_result {
 public:
  using value_type = T;

  [[nodiscard]] recv_status status() const noexcept { return status_; }
  [[nodiscard]] bool has_value() const noexcept { return value_.has_value(); }
  [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }

  [[nodiscard]] T& operator*() & noexcept { return *value_; }
  [[nodiscard]] const T& operator*() const& noexcept { return *value_; }
  [[nodiscard]] T&& operator*() && noexcept { return *std::move(value_); }
  [[nodiscard]] T* operator->() noexcept { return value_.operator->(); }
  [[nodiscard]] const T* operator->() const noexcept { return value_.operator->(); }
  // They throw std::bad_optional_access if there is no element.
  [[nodiscard]] T& value() & { return value_.value(); }
  [[nodiscard]] const T& value() const& { return value_.value(); }
  [[nodiscard]] T&& value() && { return std::move(value_).value(); }
  template <class U>
  [[nodiscard]] T value_or(U&& instead) const& {
    return value_.value_or(std::forward<U>(instead));
  }
  template <class U>
  [[nodiscard]] T value_or(U&& instead) && {
    return std::move(value_).value_or(std::forward<U>(instead));
  }

  [[nodiscard]] operator std::optional<T>() const&
    requires std::is_copy_constructible_v<T>
  {
    return value_;
  }
  [[nodiscard]] operator std::optional<T>() && { return std::move(value_); }

  // Comparison with a status, with an optional (also nullopt), or with an element, as optionals are compared.
  [[nodiscard]] friend bool operator==(const recv_result& r, recv_status s) noexcept { return r.status_ == s; }
  [[nodiscard]] friend bool operator==(const recv_result& r, std::nullopt_t) noexcept { return !r.has_value(); }
  [[nodiscard]] friend bool operator==(const recv_result& r, const std::optional<T>& o)
    requires std::equality_comparable<T>
  {
    return r.value_ == o;
  }
  [[nodiscard]] friend bool operator==(const recv_result& a, const recv_result& b)
    requires std::equality_comparable<T>
  {
    return a.status_ == b.status_ && a.value_ == b.value_;
  }
  template <class U>
    requires(!detail::is_whole_result<U> &&
             requires(const T& t, const U& u) {
               { t == u } -> std::convertible_to<bool>;
             })
  [[nodiscard]] friend bool operator==(const recv_result& r, const U& element) {
    return r.has_value() && *r == element;
  }

 private:
  friend struct detail::recv_access;
  // receive(value) fills the empty optional, or returns why it did not.
  template <class Receive>
  explicit recv_result(std::in_place_t, Receive&& receive) : status_(receive(value_)) {}

  std::optional<T> value_;
  recv_status status_;
};

namespace detail {

// Makes a recv_result in the caller's frame, so the element arrives without a further move.
struct recv_access {
  template <class T, class Receive>
  [[nodiscard]] static recv_result<T> make(Receive&& receive) {
    return recv_result<T>(std::in_place, std::forward<Receive>(receive));
  }
};

}  // namespace detail
}  // namespace weft::inline v1
