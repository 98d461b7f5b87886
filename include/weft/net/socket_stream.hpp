// What all streams over sockets have: TCP and Unix.
#pragma once

#include <concepts>
#include <cstdint>
#include <source_location>
#include <system_error>
#include <utility>

#include <weft/net/byte_stream.hpp>
#include <weft/net/endpoint.hpp>
#include <weft/net/options.hpp>
#include <weft/net/ready_arm.hpp>

namespace weft::inline v1::net {

// Which half of a stream ends.
enum class half : std::uint8_t { read, write, both };

namespace detail {

// What streams over sockets and their halves have besides a handle: addresses and options.
class WEFT_API socket_handle : public stream_handle {
 public:
  [[nodiscard]] endpoint local_endpoint() const;
  [[nodiscard]] endpoint remote_endpoint() const;

  // Options (options.hpp): set(no_delay{false}), get<receive_buffer>(). Never cancellation points.
  template <socket_option Option>
  void set(const Option& o) const {
    std::error_code why;
    set(o, why);
    if (why) option::throw_error(why, "set", Option::label(), io::text_of_remote(record()));
  }
  template <socket_option Option>
  void set(const Option& o, std::error_code& why) const {
    const io::held_number held(record());
    set_option(option_socket(held.get(), held.kernel()), o, why);
  }
  template <socket_option Option>
  [[nodiscard]] Option get() const {
    std::error_code why;
    Option o = get<Option>(why);
    if (why) option::throw_error(why, "get", Option::label(), io::text_of_remote(record()));
    return o;
  }
  template <socket_option Option>
  [[nodiscard]] Option get(std::error_code& why) const {
    const io::held_number held(record());
    return get_option<Option>(option_socket(held.get(), held.kernel()), why);
  }

 protected:
  using stream_handle::stream_handle;
};

}  // namespace detail

// The half of a stream that reads. The stream is closed when both halves are gone.
class read_half final : public detail::socket_handle, public detail::reading<read_half> {
 public:
  [[nodiscard]] ready_arm readable() const { return {record(), io::side::read}; }
  template <std::invocable F>
  [[nodiscard]] auto on_readable(F f) const {
    return weft::detail::handled_arm(readable(), std::move(f));
  }

 private:
  friend class socket_stream;
  using socket_handle::socket_handle;
};

// The half of a stream that writes. Its end tells the other side that nothing more comes (shutdown).
class WEFT_API write_half final : public detail::socket_handle, public detail::writing<write_half> {
 public:
  write_half(write_half&&) noexcept = default;
  write_half& operator=(write_half&& other) noexcept;
  ~write_half();
  [[nodiscard]] ready_arm writable() const { return {record(), io::side::write}; }
  template <std::invocable F>
  [[nodiscard]] auto on_writable(F f) const {
    return weft::detail::handled_arm(writable(), std::move(f));
  }

 private:
  friend class socket_stream;
  using socket_handle::socket_handle;
};

class WEFT_API socket_stream : public detail::socket_handle,
                               public detail::reading<socket_stream>,
                               public detail::writing<socket_stream> {
 public:
  void shutdown(half which) const;
  void shutdown(half which, std::error_code& why) const;
  // Two halves, for two tasks.
  [[nodiscard]] std::pair<read_half, write_half> split() &&;
  // Gives up the socket without closing it. Throws usage_error while another task uses it.
  [[nodiscard]] int release() { return handle_.release(); }

  // Arms of a select: there is something to read (or the end), there is room to write.
  [[nodiscard]] ready_arm readable() const { return {record(), io::side::read}; }
  [[nodiscard]] ready_arm writable() const { return {record(), io::side::write}; }
  template <std::invocable F>
  [[nodiscard]] auto on_readable(F f) const {
    return weft::detail::handled_arm(readable(), std::move(f));
  }
  template <std::invocable F>
  [[nodiscard]] auto on_writable(F f) const {
    return weft::detail::handled_arm(writable(), std::move(f));
  }

 protected:
  using socket_handle::socket_handle;
};

}  // namespace weft::inline v1::net
