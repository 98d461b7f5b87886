// Unix sockets: streams between processes of one machine, which can also pass descriptors.
#pragma once

#include <chrono>
#include <cstddef>
#include <source_location>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <weft/descriptor.hpp>
#include <weft/net/socket_listener.hpp>
#include <weft/net/socket_stream.hpp>

namespace weft::inline v1::net {

// Bytes, and the descriptors that came with the first of them. No bytes: the end of the stream.
struct received_descriptors {
  std::size_t size = 0;
  std::vector<descriptor> descriptors;
};

class WEFT_API unix_stream final : public socket_stream {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using source = std::source_location;

  unix_stream() noexcept = default;

  // Always cancellation points.
  [[nodiscard]] static unix_stream connect(const endpoint& to, source where = source::current());
  [[nodiscard]] static unix_stream connect(const endpoint& to, std::error_code& why, source where = source::current());
  // Two ends that are connected with each other.
  [[nodiscard]] static std::pair<unix_stream, unix_stream> pair();
  [[nodiscard]] static unix_stream adopt(int fd);

  // --- passing descriptors ------------------------------------------------------------------------------------------
  // Writes all bytes, at least one, and passes copies of the descriptors with the first of them; the caller keeps its
  // own. At most 253 descriptors; errc::invalid_argument. With an error code it returns how many bytes were written: if
  // any, the descriptors went with them. Always cancellation points; a cancelled call may have written a part.
  void send_descriptors(const_buffer bytes, std::span<const int> fds, source where = source::current()) const;
  std::size_t send_descriptors(const_buffer bytes, std::span<const int> fds, std::error_code& why,
                               source where = source::current()) const;
  // Reads what there is, at least one byte, and the descriptors that came with it, which are closed at exec. One call
  // never reads beyond bytes that descriptors came with. If there is no room in this process for all descriptors, those
  // that came are closed, and the error is errc::too_many_files_open; the bytes are read nevertheless. read_some() drops
  // descriptors. Always cancellation points; a cancelled call has received nothing.
  [[nodiscard]] received_descriptors recv_descriptors(mutable_buffer to, source where = source::current()) const;
  [[nodiscard]] received_descriptors recv_descriptors(mutable_buffer to, std::error_code& why,
                                                      source where = source::current()) const;

 private:
  friend class detail::stream_listener<unix_stream>;
  using socket_stream::socket_stream;

  static io::fd_handle open_socket(const endpoint& at, const char* who, std::error_code& why);
  static unix_stream accepted(io::fd_handle h) noexcept { return unix_stream(std::move(h)); }
};

// A path of the file system is made by the listener and stays there when it is gone. A listener at a path where
// another one has been fails with errc::address_in_use until the file is removed; an abstract name is free at once.
class unix_listener final : public detail::stream_listener<unix_stream> {
 public:
  using stream_listener::stream_listener;
};

}  // namespace weft::inline v1::net
