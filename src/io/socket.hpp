// Sockets below the public classes: opening, accepting, connecting, and the text that errors carry.
#pragma once

#include <string>
#include <system_error>
#include <utility>

#include "io/transfer.hpp"
#include <weft/detail/fd_handle.hpp>
#include <weft/net/endpoint.hpp>
#include <weft/net/socket_listener.hpp>

namespace weft::inline v1::io {

inline constexpr auto without_limit = detail::clock::time_point::max();

// A short transfer on a TCP socket means that there is no more. A read of a Unix socket is also short where passed
// descriptors begin, so it says nothing about what is left.
inline constexpr fd_traits tcp_traits{.short_is_all = true};
inline constexpr fd_traits unix_traits{};

// A non-blocking socket that no child process inherits. Returns an empty handle if it sets `why`.
[[nodiscard]] fd_handle open_socket(const kernel_calls& calls, int family, int type, fd_traits traits,
                                    std::error_code& why);
[[nodiscard]] fd_handle open_socket(int family, int type, fd_traits traits, std::error_code& why);
[[nodiscard]] std::pair<fd_handle, fd_handle> open_pair(int family, int type, fd_traits traits, std::error_code& why);
// Takes over a socket that was opened elsewhere, and makes it non-blocking. Throws std::system_error.
[[nodiscard]] fd_handle adopt_socket(int fd, fd_traits traits);
void bind_to(fd_record& r, const net::endpoint& at, std::error_code& why) noexcept;
// Binds and listens.
void listen_at(fd_record& r, const net::endpoint& at, const net::listen_options& o, std::error_code& why) noexcept;
[[nodiscard]] fd_handle accept(fd_record& listener, const limit& l, std::error_code& why);
// Never waits: errc::operation_would_block if there is no connection.
[[nodiscard]] fd_handle try_accept(fd_record& listener, std::error_code& why);
void connect(fd_record& r, const net::endpoint& to, const limit& l, std::error_code& why);
// Begins to connect a TCP socket, or tells how that went: 0, -EAGAIN while it goes on, or the error below zero.
[[nodiscard]] std::ptrdiff_t connect_once(fd_record& r, const net::endpoint& to) noexcept;

void set_flag(fd_record& r, int level, int name, bool on, std::error_code& why) noexcept;

// Both throw usage_error with the name of the call for an address of another kind. The first returns the family as the
// kernel names it.
[[nodiscard]] int require_internet(const net::endpoint& e, const char* call);
void require_local(const net::endpoint& e, const char* call);

[[nodiscard]] net::endpoint local_endpoint(fd_record& r);
[[nodiscard]] net::endpoint remote_endpoint(fd_record& r);
// "standard input", "descriptor 7"
[[nodiscard]] std::string text_of_number(int fd);
// As throw_if() of fd_handle.hpp, for an operation that has no descriptor.
void throw_if(const std::error_code& why, const char* operation, const net::endpoint& at);

}  // namespace weft::inline v1::io
