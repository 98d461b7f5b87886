// Pipes: bytes go in at one end and come out at the other, in this process or between processes.
//
//   auto [from, to] = weft::make_pipe();
//   to.write_all("hello");
//   to.close();                                  // the reader finds the end
//
// Both ends have the calls of all streams (net/byte_stream.hpp). A write to a pipe that nobody can read any more is
// errc::broken_pipe; no signal is sent (SIGPIPE). No child process inherits an end, unless it is given to it
// (process_options.hpp).
#pragma once

#include <concepts>
#include <system_error>
#include <utility>

#include <weft/net/byte_stream.hpp>
#include <weft/net/ready_arm.hpp>

namespace weft::inline v1 {

struct pipe_ends;

class WEFT_API pipe_reader final : public net::detail::stream_handle, public net::detail::reading<pipe_reader> {
 public:
  pipe_reader() noexcept = default;  // no pipe: whatever is called on it throws usage_error
  // Takes over the end of a pipe that was opened elsewhere, a FIFO for example, and makes it non-blocking. Nobody else
  // should use it; for one that is shared there is input_stream (stdio.hpp). Throws std::system_error, and has closed
  // nothing then.
  [[nodiscard]] static pipe_reader adopt(int fd);
  // Gives up the descriptor without closing it. It stays non-blocking. Throws usage_error while another task uses it.
  [[nodiscard]] int release() { return handle_.release(); }

  // An arm of a select: there is something to read, or the end.
  [[nodiscard]] net::ready_arm readable() const { return {record(), io::side::read}; }
  template <std::invocable F>
  [[nodiscard]] auto on_readable(F f) const {
    return detail::handled_arm(readable(), std::move(f));
  }

 private:
  friend pipe_ends make_pipe(std::error_code& why);
  friend class process;
  using stream_handle::stream_handle;
};

class WEFT_API pipe_writer final : public net::detail::stream_handle, public net::detail::writing<pipe_writer> {
 public:
  pipe_writer() noexcept = default;
  [[nodiscard]] static pipe_writer adopt(int fd);
  [[nodiscard]] int release() { return handle_.release(); }

  // An arm of a select: there is room to write, or nobody can read any more.
  [[nodiscard]] net::ready_arm writable() const { return {record(), io::side::write}; }
  template <std::invocable F>
  [[nodiscard]] auto on_writable(F f) const {
    return detail::handled_arm(writable(), std::move(f));
  }

 private:
  friend pipe_ends make_pipe(std::error_code& why);
  friend class process;
  using stream_handle::stream_handle;
};

struct pipe_ends {
  pipe_reader reader;
  pipe_writer writer;
};

// Never cancellation points. (Not `pipe`, which the C library has.)
[[nodiscard]] WEFT_API pipe_ends make_pipe();
[[nodiscard]] WEFT_API pipe_ends make_pipe(std::error_code& why);

}  // namespace weft::inline v1
