// Remote procedure calls over channels.
//
//   auto add = stream::make_rpc<int(int, int)>([](int a, int b) { return a + b; });   // spawns a server
//   int three = add(1, 2);                                                            // from any task or thread
//
// The server answers one call after the other. If its function throws, the call it belongs to throws that exception.
// The server ends when the last client is gone. As a stage, rpc(f) takes tuples of arguments and sends results, in
// order (std::monostate for void).
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <weft/detail/config.hpp>
#include <weft/oneshot.hpp>
#include <weft/stream/sinks.hpp>
#include <weft/stream/stage.hpp>

namespace weft::inline v1::stream {

// Thrown by a call that nobody will answer.
class WEFT_API rpc_closed : public std::runtime_error {
 public:
  rpc_closed() : std::runtime_error("weft: nobody answers this call: its server has ended") {}
};

template <class Signature>
struct rpc_request;
template <class R, class... Args>
struct rpc_request<R(Args...)> {
  using result = std::conditional_t<std::is_void_v<R>, std::monostate, R>;
  std::tuple<std::decay_t<Args>...> arguments;
  oneshot_writer<result> answer;
};

namespace detail {

template <class F, class Tuple>
decltype(auto) apply_call(F& f, Tuple&& arguments) {
  if constexpr (std::is_void_v<decltype(std::apply(f, std::forward<Tuple>(arguments)))>) {
    std::apply(f, std::forward<Tuple>(arguments));
    return std::monostate();
  } else {
    return std::apply(f, std::forward<Tuple>(arguments));
  }
}

template <class F>
struct rpc_core {
  static constexpr std::string_view name = "rpc";
  template <class T>
  using output = std::remove_cvref_t<decltype(apply_call(std::declval<F&>(), std::declval<T>()))>;
  template <class>
  using input = parameters_of<F>;
  F f;

  template <class T, class U>
  void run(reader<T>& in, writer<U>& out) {
    while (std::optional<T> call = next(in, out))
      if (!out.send(apply_call(f, std::move(*call)))) return;
  }
};
struct make_rpc_stage {
  template <class F>
  auto operator()(F f) const {
    return rpc_core<F>{std::move(f)};
  }
};

template <class F>
struct rpc_server_core {
  static constexpr std::string_view name = "rpc";
  using input = unknown;
  F f;

  template <class Signature>
  void run(reader<rpc_request<Signature>>& in) {
    while (std::optional<rpc_request<Signature>> call = in.recv()) {
      try {
        (void)call->answer.send(apply_call(f, std::move(call->arguments)));
      } catch (const cancelled&) {
        throw;
      } catch (...) {
        if (call->answer) call->answer.close(std::current_exception());
      }
    }
  }
};
struct make_rpc_server {
  template <class F>
  auto operator()(F f) const {
    return rpc_server_core<F>{std::move(f)};
  }
};

}  // namespace detail

// The calling side. Copies share one server.
template <class Signature>
class rpc_client;
template <class R, class... Args>
class rpc_client<R(Args...)> {
 public:
  using request = rpc_request<R(Args...)>;
  rpc_client() = default;
  explicit rpc_client(writer<request> server) noexcept : server_(std::move(server)) {}

  // Throws what the server's function throws, and rpc_closed if there is no answer. A cancellation point.
  R operator()(Args... args) {
    auto [answer, result] = make_oneshot<typename request::result>();
    if (!server_.send(request{{std::forward<Args>(args)...}, std::move(answer)})) throw rpc_closed();
    auto value = result.recv();
    if (!value) throw rpc_closed();
    if constexpr (!std::is_void_v<R>) return std::move(*value);
  }

 private:
  writer<request> server_;
};

inline constexpr detail::combinator<detail::make_rpc_stage> rpc{};  // (f): sends f(arguments…)
inline constexpr detail::sink_combinator<detail::make_rpc_server> rpc_server{};  // (f): answers a stream of rpc_request

// Spawns a server and returns its first client.
template <class Signature, class F>
[[nodiscard]] rpc_client<Signature> make_rpc(F f) {
  return rpc_client<Signature>(consumer<rpc_request<Signature>>(rpc_server(std::move(f))));
}

}  // namespace weft::inline v1::stream
