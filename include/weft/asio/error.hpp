// Errors between Weft, which has std::error_code, and Boost, which has its own.
#pragma once

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <concepts>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

#include <weft/io_error.hpp>
#include <weft/tls/error.hpp>

namespace weft::inline v1 {

// What Asio calls this error. Asio has the numbers of errno in its system category, where they compare equal to
// asio::error::connection_reset, timed_out, and operation_aborted, which is how Asio calls errc::operation_canceled.
[[nodiscard]] inline boost::system::error_code asio_error(const std::error_code& why) noexcept {
  if (!why) return {};
  if (why.category() == std::generic_category() || why.category() == std::system_category())
    return {why.value(), boost::system::system_category()};
  if (why == make_error_code(io_errc::stream_ended)) return boost::asio::error::eof;
  if (why == make_error_code(tls_errc::truncated)) return boost::asio::ssl::error::stream_truncated;
  return why;  // Boost can carry any code of std
}

namespace detail {

// The message without the reason at its end, which std::system_error appends again.
[[nodiscard]] inline std::string without_reason(const boost::system::system_error& e) {
  std::string text = e.what();
  const std::string reason = e.code().what();
  if (text.ends_with(": " + reason)) text.resize(text.size() - reason.size() - 2);
  return text;
}

}  // namespace detail

// Makes f throw std::system_error where Boost's functions throw boost::system::system_error, which is not derived from
// it. net::serve() takes the one for the end of a connection, but not the other:
//
//   net::serve(listener, s, weft::with_std_errors([](net::tcp_stream c) { … beast::http::read(…); … }));
template <class F>
[[nodiscard]] auto with_std_errors(F f) {
  return [f = std::move(f)]<class... Args>(Args&&... args) mutable -> decltype(auto)
           requires std::invocable<F&, Args...>
  {
    try {
      return std::invoke(f, std::forward<Args>(args)...);
    } catch (const boost::system::system_error& e) {
      throw std::system_error(e.code(), detail::without_reason(e));
    }
  };
}

}  // namespace weft::inline v1
