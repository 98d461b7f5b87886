// Sending a file, or a part of one, over a socket without copying it through the program (sendfile(2)).
//
//   const auto page = weft::fs::file::open("index.html");
//   stream.write_all(head);
//   weft::net::send_file(stream, page);
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <source_location>
#include <system_error>

#include <weft/fs/file.hpp>
#include <weft/net/socket_stream.hpp>

namespace weft::inline v1::net {

inline constexpr std::uint64_t to_the_end = UINT64_MAX;

namespace detail {

template <class To>
concept takes_files = std::derived_from<To, socket_stream> || std::same_as<To, write_half>;

// Without `why` it throws.
WEFT_API std::uint64_t send_file(io::fd_record& to, const fs::file& from, std::uint64_t offset, std::uint64_t length,
                                 const io::limit& l, std::error_code* why);

}  // namespace detail

// Sends `length` bytes of the file from `offset` on, and returns how many were sent: fewer only if the file ends before,
// also if another task or process has cut it off meanwhile. The position of the file does not matter and does not
// change. With an error code the count says how much was sent before the error. A file that the kernel cannot send, such
// as a pipe, is errc::invalid_argument.
//
// The kernel may send pages of the file after the call has returned: what is written to the file then may be sent
// instead.
//
// Always cancellation points. After a cancelled call the stream is only good for closing.
template <detail::takes_files To>
std::uint64_t send_file(const To& to, const fs::file& from, std::uint64_t offset = 0, std::uint64_t length = to_the_end,
                        std::source_location where = std::source_location::current()) {
  return detail::send_file(to.record(), from, offset, length, to.usual_limit(where), nullptr);
}
template <detail::takes_files To>
std::uint64_t send_file(const To& to, const fs::file& from, std::uint64_t offset, std::uint64_t length,
                        std::error_code& why, std::source_location where = std::source_location::current()) {
  return detail::send_file(to.record(), from, offset, length, to.usual_limit(where), &why);
}
template <detail::takes_files To>
std::uint64_t send_file_until(std::chrono::steady_clock::time_point when, const To& to, const fs::file& from,
                              std::uint64_t offset = 0, std::uint64_t length = to_the_end,
                              std::source_location where = std::source_location::current()) {
  return detail::send_file(to.record(), from, offset, length, {when, where}, nullptr);
}
template <detail::takes_files To>
std::uint64_t send_file_until(std::chrono::steady_clock::time_point when, const To& to, const fs::file& from,
                              std::uint64_t offset, std::uint64_t length, std::error_code& why,
                              std::source_location where = std::source_location::current()) {
  return detail::send_file(to.record(), from, offset, length, {when, where}, &why);
}
template <class Rep, class Period, detail::takes_files To>
std::uint64_t send_file_for(std::chrono::duration<Rep, Period> time, const To& to, const fs::file& from,
                            std::uint64_t offset = 0, std::uint64_t length = to_the_end,
                            std::source_location where = std::source_location::current()) {
  return send_file_until(weft::detail::time_after(time), to, from, offset, length, where);
}
template <class Rep, class Period, detail::takes_files To>
std::uint64_t send_file_for(std::chrono::duration<Rep, Period> time, const To& to, const fs::file& from,
                            std::uint64_t offset, std::uint64_t length, std::error_code& why,
                            std::source_location where = std::source_location::current()) {
  return send_file_until(weft::detail::time_after(time), to, from, offset, length, why, where);
}

}  // namespace weft::inline v1::net
