// Values on their way into and out of a channel, and the arms of a select that carry them.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <weft/detail/channel_core.hpp>
#include <weft/select.hpp>

namespace weft::inline v1 {
namespace detail {

// A small value in the form that the core uses. Every bit is defined: an empty T has nothing to copy, and the rest is
// zero.
template <class T>
[[nodiscard]] chan::words to_words(const T& value) noexcept {
  chan::words to{};
  if constexpr (!std::is_empty_v<T>) std::memcpy(&to, static_cast<const void*>(std::addressof(value)), sizeof(T));
  return to;
}
template <class T>
[[nodiscard]] T from_words(const chan::words& from) noexcept {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &from, sizeof(T));
  return std::bit_cast<T>(bytes);
}

// A value to send. It refers to the caller's value, which is moved from only if it is taken.
template <class T>
class outgoing {
 public:
  explicit outgoing(T& value) noexcept : value_(std::addressof(value)) {}
  [[nodiscard]] void* address() noexcept {
    if constexpr (chan::is_small<T>) {
      small_ = to_words(*value_);
      return &small_;
    } else {
      return value_;
    }
  }

 private:
  struct nothing {};
  T* value_;
  [[no_unique_address]] std::conditional_t<chan::is_small<T>, chan::words, nothing> small_;
};

// Calls receive(slot), which fills the empty optional. The optional itself is the slot, so there are no moves beyond
// those of the core, and a throwing move cannot lose anything on the way.
template <class T, class Receive>
chan::status receive_into(std::optional<T>& received, Receive&& receive) {
  if constexpr (chan::is_small<T>) {
    chan::words slot;
    const chan::status how = receive(&slot);
    if (how == chan::status::done) received.emplace(from_words<T>(slot));
    return how;
  } else {
    return receive(&received);
  }
}

// The same for an arm: it is filled now and taken later.
template <class T>
class incoming {
 public:
  [[nodiscard]] void* address() noexcept { return &slot_; }
  [[nodiscard]] std::optional<T> take(bool is_there) {
    if constexpr (chan::is_small<T>) {
      if (!is_there) return std::nullopt;
      return from_words<T>(slot_);
    } else {
      std::optional<T> taken(std::move(slot_));
      slot_.reset();
      return taken;
    }
  }

 private:
  std::conditional_t<chan::is_small<T>, chan::words, std::optional<T>>
      slot_{};  // an arm may be moved before it is used
};

// An operation that is tried first, and constructed only if it has to wait.
template <class Operation>
class late_operation {
 public:
  explicit late_operation(chan::core* c) noexcept : channel_(c) {}
  // attempt(channel) tries it and returns the status.
  template <class Attempt>
  [[nodiscard]] tried try_at_once(Attempt&& attempt) {
    if (channel_ == nullptr) return tried::disabled;
    result_ = attempt(*channel_);
    return result_ == chan::status::would_block ? tried::not_ready : tried::won;
  }
  // slot() returns where the value is or will be.
  template <class Slot>
  [[nodiscard]] waits::arm prepare(Slot&& slot) {
    if (channel_ == nullptr) return {};
    if (!waiting_) waiting_.emplace(channel_);
    waiting_->aim(slot());
    result_ = chan::status::pending;
    return {&*waiting_, &waiting_->node()};
  }
  // To be called on the arm that has won.
  [[nodiscard]] bool is_done() const noexcept {
    return (result_ == chan::status::pending ? waiting_->result() : result_) == chan::status::done;
  }

 private:
  chan::core* channel_;
  chan::status result_ = chan::status::pending;
  std::optional<Operation> waiting_;
};

// True for an f(std::optional<T>), which is told of a close, and false for an f(T). A T converts to an optional, so an
// f of the first kind must also accept nullopt. A generic f cannot be asked that without instantiating it; it counts as
// an f(T) if it can be called with a T.
template <class F, class T>
inline constexpr bool takes_optional = [] {
  if constexpr (std::is_pointer_v<F> || requires { &F::operator(); })
    return std::invocable<F&, std::optional<T>> && std::invocable<F&, std::nullopt_t>;
  else
    return !std::invocable<F&, T>;
}();

// The value of a send arm that owns it. After it was sent, a value that is not small is gone.
template <class T>
class kept_value {
 public:
  explicit kept_value(T&& from) : value_(kept_from(std::move(from))) {}
  explicit kept_value(const T& from) : value_(kept_from(from)) {}
  [[nodiscard]] void* address() noexcept { return std::addressof(value_); }

 private:
  template <class From>
  [[nodiscard]] static auto kept_from(From&& from) {
    if constexpr (chan::is_small<T>)
      return to_words<T>(from);
    else
      return T(std::forward<From>(from));
  }
  std::conditional_t<chan::is_small<T>, chan::words, T> value_;
};
// A value that lives elsewhere. It stays as it is unless it is sent.
template <class T>
class lent_value {
 public:
  explicit lent_value(T& value) noexcept : value_(std::addressof(value)) {}
  [[nodiscard]] void* address() noexcept { return value_; }

 private:
  T* value_;
};

// A send as an arm of the given kind.
template <class Kind, class Value>
class sending_arm final : public Kind {
 public:
  template <class From>
  sending_arm(chan::core* c, From&& value) : operation_(c),
                                             value_(std::forward<From>(value)) {}

  [[nodiscard]] tried try_at_once() override {
    return operation_.try_at_once([this](chan::core& c) { return chan::try_send(c, value_.address()); });
  }
  [[nodiscard]] waits::arm prepare() override {
    return operation_.prepare([this] { return value_.address(); });
  }
  [[nodiscard]] bool complete() override { return operation_.is_done(); }
  template <class F>
  void tell(F& f, bool ok) {
    if (ok) f();
  }

 private:
  late_operation<chan::send_operation> operation_;
  Value value_;
};

// `w << std::move(value)` in a select.
template <class T>
using passing_send_arm = sending_arm<passing_arm, lent_value<T>>;

}  // namespace detail

// `w << value` in a select. It holds a copy, or the value that it was given.
template <class T>
using send_arm = detail::sending_arm<select_arm, detail::kept_value<T>>;

// `r >> variable` in a select.
template <class T>
class receive_arm final : public select_arm {
 public:
  explicit receive_arm(chan::core* c) noexcept : operation_(c) {}
  receive_arm(chan::core* c, T& to) noexcept : operation_(c), value_(std::addressof(to)) {}
  receive_arm(chan::core* c, std::optional<T>& to) noexcept : operation_(c), maybe_(std::addressof(to)) {}

  [[nodiscard]] detail::tried try_at_once() override {
    return operation_.try_at_once([this](chan::core& c) { return chan::try_receive(c, slot_.address()); });
  }
  [[nodiscard]] waits::arm prepare() override {
    return operation_.prepare([this] { return slot_.address(); });
  }
  [[nodiscard]] bool complete() override {
    const bool ok = operation_.is_done();
    if (maybe_ != nullptr) {
      maybe_->reset();
      if (std::optional<T> taken = take()) maybe_->emplace(std::move(*taken));
    } else if (value_ != nullptr && ok) {
      if constexpr (std::is_move_assignable_v<T>) *value_ = *take();
    }
    return ok;
  }
  [[nodiscard]] std::optional<T> take() { return slot_.take(operation_.is_done()); }
  template <class F>
  void tell(F& f, bool ok) {
    if constexpr (!detail::takes_optional<F, T>) {
      if (ok) std::invoke(f, std::move(*take()));
    } else {
      std::invoke(f, take());
    }
  }

 private:
  detail::late_operation<chan::receive_operation> operation_;
  detail::incoming<T> slot_;
  T* value_ = nullptr;
  std::optional<T>* maybe_ = nullptr;
};

// `~w` and `~r` in a select.
class death_arm final : public select_arm {
 public:
  death_arm(chan::core* c, chan::side watcher) noexcept : operation_(c, watcher) {}
  [[nodiscard]] detail::tried try_at_once() noexcept override {
    return operation_.enabled() ? detail::try_with_lock(operation_) : detail::tried::disabled;
  }
  [[nodiscard]] waits::arm prepare() override {
    if (!operation_.enabled()) return {};
    operation_.aim(nullptr);
    return {&operation_, &operation_.node()};
  }
  [[nodiscard]] bool complete() noexcept override { return false; }
  template <class F>
  void tell(F& f, bool) {
    f();
  }

 private:
  chan::death_operation operation_;
};

}  // namespace weft::inline v1
