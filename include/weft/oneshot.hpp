// A channel for one value, from one sender to one receiver. Either may be a task or an outside thread.
//
//   auto [answer, question] = weft::make_oneshot<int>();     // oneshot_writer<int>, oneshot_reader<int>
//   weft::spawn([answer = std::move(answer)]() mutable { (void)answer.send(42); });
//   std::optional<int> v = question.recv();                  // empty if the writer is gone and has sent nothing
#pragma once

#include <exception>
#include <optional>
#include <utility>

#include <weft/channel.hpp>
#include <weft/detail/news_ends.hpp>

namespace weft::inline v1 {

template <channel_element T>
class oneshot_reader;
template <channel_element T>
class oneshot_writer;
template <class T>
struct oneshot_ends {
  oneshot_writer<T> out;
  oneshot_reader<T> in;
};
template <channel_element T>
[[nodiscard]] oneshot_ends<T> make_oneshot();

// Movable, not copyable. A send that succeeds uses it up.
template <channel_element T>
class oneshot_writer : private detail::news_writer {
  using base = detail::news_writer;

 public:
  using value_type = T;
  oneshot_writer() = default;
  oneshot_writer(oneshot_writer&&) = default;
  oneshot_writer& operator=(oneshot_writer&&) = default;

  using base::reset;
  using base::operator bool;
  using base::operator~;  // the reader is gone
  using base::on_death;

  // The result is `closed` if the reader is gone or close() was called; the value is then left as it was. Never waits;
  // never a cancellation point.
  send_result send(T&& value) {
    {
      chan::news_guard guard(this->news());
      if (chan::is_closed(this->news()) || !chan::has_readers(this->news())) return send_status::closed;
      static_cast<std::optional<T>*>(chan::state_of(this->news()))->emplace(std::move(value));
      guard.announce();
    }
    reset();
    return send_status::sent;
  }
  send_result send(const T& value)
    requires std::is_copy_constructible_v<T>
  {
    return send(T(value));
  }
  // No value will be sent. recv() throws the error, if one is given.
  void close(std::exception_ptr error = nullptr) { chan::close(this->news(), std::move(error)); }

 private:
  using base::base;
  friend oneshot_ends<T> make_oneshot<T>();
};

// Movable, not copyable.
template <channel_element T>
class oneshot_reader : public detail::news_reader<oneshot_reader<T>, T> {
  using base = detail::news_reader<oneshot_reader<T>, T>;

 public:
  oneshot_reader() = default;
  oneshot_reader(oneshot_reader&&) = default;
  oneshot_reader& operator=(oneshot_reader&&) = default;

 private:
  using base::base;
  friend base;
  friend class detail::arrival_arm<oneshot_reader>;
  friend oneshot_ends<T> make_oneshot<T>();

  [[nodiscard]] chan::news* source() const noexcept { return this->news_or_null(); }
  // After the value is taken the writer is gone, so a second wait ends at once.
  [[nodiscard]] std::uint64_t seen() const noexcept { return 0; }
  [[nodiscard]] std::optional<T> take() {
    chan::news_guard guard(this->news());
    auto& value = *static_cast<std::optional<T>*>(chan::state_of(this->news()));
    std::optional<T> taken(std::move(value));
    value.reset();  // it is moved from, and owns nothing whose destructor could call back
    return taken;
  }
};

template <channel_element T>
oneshot_ends<T> make_oneshot() {
  chan::news* n = chan::make_news_with<std::optional<T>>();
  return {oneshot_writer<T>(n), oneshot_reader<T>(n)};
}

}  // namespace weft::inline v1
