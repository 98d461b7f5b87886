// Counted ends of a oneshot, broadcast or watch, and the arms of a select on them.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include <weft/detail/channel_arms.hpp>
#include <weft/detail/news_core.hpp>
#include <weft/detail/task_core.hpp>
#include <weft/recv_result.hpp>
#include <weft/select.hpp>
#include <weft/timer.hpp>

namespace weft::inline v1::detail {

// An end. It is empty if it was default-constructed or moved from.
template <chan::side Side>
class news_end {
 public:
  news_end() = default;
  news_end(const news_end& other) noexcept : news_(other.news_) {
    if (news_ != nullptr) chan::add_end(*news_, Side);
  }
  news_end(news_end&& other) noexcept : news_(std::exchange(other.news_, nullptr)) {}
  news_end& operator=(news_end other) noexcept {
    std::swap(news_, other.news_);
    return *this;
  }
  ~news_end() {
    if (news_ != nullptr) chan::drop_end(news_, Side);
  }

  // Lets go of the object, as the destructor does.
  void reset() noexcept { *this = news_end(); }
  // False for an empty handle, whose arms in a select are disabled.
  [[nodiscard]] explicit operator bool() const noexcept { return news_ != nullptr; }

  [[nodiscard]] bool is_closed() const { return chan::is_closed(news()); }
  // The error that close(error) was given; null if there was none.
  [[nodiscard]] std::exception_ptr close_error() const { return chan::error_of(news()); }

 protected:
  explicit news_end(chan::news* n) noexcept : news_(n) {}
  [[nodiscard]] chan::news& news() const {
    if (news_ == nullptr) throw_usage("this handle is empty: default-constructed, moved from, used up or reset");
    return *news_;
  }
  [[nodiscard]] chan::news* news_or_null() const noexcept { return news_; }

 private:
  chan::news* news_ = nullptr;
};

// `r >> variable` in a select.
template <class Reader>
class arrival_arm final : public select_arm {
 public:
  using value_type = typename Reader::value_type;
  explicit arrival_arm(Reader& from) noexcept : from_(&from), operation_(from.source(), chan::side::reader) {}
  arrival_arm(Reader& from, value_type& to) noexcept : arrival_arm(from) { value_ = std::addressof(to); }
  arrival_arm(Reader& from, std::optional<value_type>& to) noexcept : arrival_arm(from) { maybe_ = std::addressof(to); }

  [[nodiscard]] tried try_at_once() noexcept override {
    if (!operation_.enabled()) return tried::disabled;
    operation_.aim(from_->seen());
    return won_if(operation_.try_complete());
  }
  [[nodiscard]] waits::arm prepare() override {
    if (!operation_.enabled()) return {};
    operation_.aim(from_->seen());
    return {&operation_, &operation_.node()};
  }
  [[nodiscard]] bool complete() override {
    std::optional<value_type> got = from_->take();
    const bool ok = got.has_value();
    if (maybe_ != nullptr) {
      maybe_->reset();
      if (ok) maybe_->emplace(std::move(*got));
    } else if (value_ != nullptr) {
      if constexpr (std::is_move_assignable_v<value_type>)
        if (ok) *value_ = std::move(*got);
    } else if (ok) {
      got_.emplace(std::move(*got));
    }
    return ok;
  }
  template <class F>
  void tell(F& f, bool ok) {
    if constexpr (takes_optional<F, value_type>) {
      std::invoke(f, std::move(got_));
    } else {
      if (ok) std::invoke(f, std::move(*got_));
    }
    got_.reset();
  }

 private:
  Reader* from_;
  chan::news_operation operation_;
  value_type* value_ = nullptr;
  std::optional<value_type>* maybe_ = nullptr;
  std::optional<value_type> got_;
};

// `~w` in a select: there is no reader at the moment.
class no_reader_arm final : public select_arm {
 public:
  explicit no_reader_arm(chan::news* n) noexcept : operation_(n, chan::side::writer) {}
  [[nodiscard]] tried try_at_once() noexcept override {
    return operation_.enabled() ? try_with_lock(operation_) : tried::disabled;
  }
  [[nodiscard]] waits::arm prepare() noexcept override {
    if (!operation_.enabled()) return {};
    return {&operation_, &operation_.node()};
  }
  [[nodiscard]] bool complete() noexcept override { return false; }
  template <class F>
  void tell(F& f, bool) {
    f();
  }

 private:
  chan::news_operation operation_;
};

class news_writer : public news_end<chan::side::writer> {
 public:
  news_writer() = default;

  // Arms for select, which win when there is no reader at the moment.
  [[nodiscard]] no_reader_arm operator~() const { return no_reader_arm(news_or_null()); }
  template <std::invocable F>
  [[nodiscard]] auto on_death(F f) const {
    return handled_arm(~*this, std::move(f));
  }

 protected:
  explicit news_writer(chan::news* n) noexcept : news_end<chan::side::writer>(n) {}
};

// All forms of waiting. A Reader has source(), seen() (the version that it knows) and take() (what is there beyond that
// version, or nothing).
template <class Reader, class T>
class news_reader : public news_end<chan::side::reader> {
 public:
  using value_type = T;
  news_reader() = default;

  // Waits for a value. The result is empty if the object is closed and nothing is left. Throws the error that
  // close(error) was given. A cancellation point.
  [[nodiscard]] std::optional<T> recv(std::source_location where = std::source_location::current()) {
    chan::wait_for_news(news(), self().seen(), where);
    std::optional<T> got = self().take();
    if (!got) throw_if_failed();
    return got;
  }
  // As recv(), but waits until that time at the latest; the status is timed_out then.
  [[nodiscard]] recv_result<T> recv_until(std::chrono::steady_clock::time_point when,
                                          std::source_location where = std::source_location::current()) {
    (void)news();
    return recv_access::make<T>([&](std::optional<T>& got) {
      auto receiving = on_recv([&](std::optional<T> v) {
        if (v)
          got.emplace(std::move(*v));
        else
          throw_if_failed();
      });
      timer limit(when);
      const bool in_time = select_call<waits::preference::in_order>(where, receiving, limit).index() == 0;
      if (!in_time) return recv_status::timed_out;
      return got ? recv_status::received : recv_status::closed;
    });
  }
  template <class Rep, class Period>
  [[nodiscard]] recv_result<T> recv_for(std::chrono::duration<Rep, Period> time,
                                        std::source_location where = std::source_location::current()) {
    return recv_until(time_after(time), where);
  }
  // Never waits: the status is `empty` where recv() would wait. Does not throw the error of close(error). Never a
  // cancellation point.
  [[nodiscard]] recv_result<T> try_recv() {
    const bool was_closed = is_closed();  // asked first: what was sent before the close can be taken then
    return recv_access::make<T>([&](std::optional<T>& got) {
      if (std::optional<T> taken = self().take()) {
        got.emplace(std::move(*taken));
        return recv_status::received;
      }
      return was_closed ? recv_status::closed : recv_status::empty;
    });
  }

  // Arms for select. They refer to this handle.
  [[nodiscard]] arrival_arm<Reader> operator>>(T& to) { return arrival_arm<Reader>(self(), to); }
  [[nodiscard]] arrival_arm<Reader> operator>>(std::optional<T>& to) { return arrival_arm<Reader>(self(), to); }
  // f(T) is called with the value only. f(std::optional<T>) is also called, with an empty optional, at the close.
  template <class F>
    requires std::invocable<F, T> || std::invocable<F, std::optional<T>>
  [[nodiscard]] auto on_recv(F f) {
    return handled_arm(arrival_arm<Reader>(self()), std::move(f));
  }
  template <class F>
  [[nodiscard, deprecated("its name is on_recv")]] auto on_receive(F f) {
    return on_recv(std::move(f));
  }

 protected:
  explicit news_reader(chan::news* n) noexcept : news_end<chan::side::reader>(n) {}

 private:
  [[nodiscard]] Reader& self() noexcept { return static_cast<Reader&>(*this); }
  void throw_if_failed() const {
    if (std::exception_ptr e = this->close_error()) std::rethrow_exception(std::move(e));
  }
};

}  // namespace weft::inline v1::detail
