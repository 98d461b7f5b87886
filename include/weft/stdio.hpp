// The standard streams of the process, and other descriptors that it shares with others: only the task waits.
//
//   const auto in = weft::stdin_stream();
//   char room[4096];
//   while (const std::size_t n = in.read_some(room)) weft::stdout_stream().write_all({room, n});
//
// They may be terminals, pipes, sockets, files or /dev/null. The calls are those of all streams (net/byte_stream.hpp).
// Nothing is buffered here, and nothing is known of the buffers of stdio and iostreams: flush those first, and do not
// read the same stream through both.
//
// A standard stream is shared with the parent process and with children, who expect it to block. So its flags are never
// changed. A read or write begins when poll(2) says that it is ready, and where it could block nevertheless (terminals
// and files), it is made as blocking() does it. There it is finished, whatever its time limit: if somebody else in
// between has read what there was, until there is more.
#pragma once

#include <concepts>
#include <utility>

#include <weft/net/byte_stream.hpp>
#include <weft/net/ready_arm.hpp>

namespace weft::inline v1 {

class WEFT_API input_stream final : public net::detail::stream_handle, public net::detail::reading<input_stream> {
 public:
  input_stream() noexcept = default;  // no stream: whatever is called on it throws usage_error
  // Any descriptor that can be read. It belongs to somebody else, who must not close it while this lives; close() and
  // the end of this leave it open. Throws std::system_error if there is no such descriptor.
  [[nodiscard]] static input_stream borrow(int fd);

  // An arm of a select: there is something to read, or the end. A file always has something.
  [[nodiscard]] net::ready_arm readable() const { return {record(), io::side::read}; }
  template <std::invocable F>
  [[nodiscard]] auto on_readable(F f) const {
    return detail::handled_arm(readable(), std::move(f));
  }

 private:
  using stream_handle::stream_handle;
};

class WEFT_API output_stream final : public net::detail::stream_handle, public net::detail::writing<output_stream> {
 public:
  output_stream() noexcept = default;
  [[nodiscard]] static output_stream borrow(int fd);

  [[nodiscard]] net::ready_arm writable() const { return {record(), io::side::write}; }
  template <std::invocable F>
  [[nodiscard]] auto on_writable(F f) const {
    return detail::handled_arm(writable(), std::move(f));
  }

 private:
  using stream_handle::stream_handle;
};

// Each call makes a new handle, which is cheap. Several may be used at the same time. They throw std::system_error if
// the process was started without that stream.
[[nodiscard]] WEFT_API input_stream stdin_stream();
[[nodiscard]] WEFT_API output_stream stdout_stream();
[[nodiscard]] WEFT_API output_stream stderr_stream();

}  // namespace weft::inline v1
