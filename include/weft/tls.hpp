// TLS over Weft's streams, in blocking style. Part of the component weft::asio, because it needs OpenSSL:
//
//   find_package(weft REQUIRED COMPONENTS asio)
//   target_link_libraries(program PRIVATE weft::asio)
//
//   const auto context = weft::tls_context::client();
//   weft::tls_stream s(weft::net::tcp_stream::connect(server), context);
//   s.handshake(weft::tls_client{"example.org"});
//   s.write_all("…");
//   while (const std::size_t n = s.read_some(room)) …;
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <weft/detail/task_core.hpp>
#include <weft/io_error.hpp>
#include <weft/tls/context.hpp>
#include <weft/tls/error.hpp>
#include <weft/tls/link.hpp>

namespace weft::inline v1 {

// One task may read while another writes. Several readers, or several writers, take turns. Renegotiation (TLS 1.2) is
// refused; updates of keys (TLS 1.3) happen by themselves.
//
// Every operation that may wait is a cancellation point. A cancelled read has lost nothing. After a cancelled or failed
// write, handshake or shutdown() the stream is only good for closing: nobody knows how far it came. If the other side may
// still get what was written, later writes fail (tls_errc::unfinished_write). Time limits are those of the transport:
// next_layer().expires_after(…) limits each of its reads and writes.
//
// As with every stream of Weft there are two forms of each operation; see weft/net/byte_stream.hpp. Reasons beside those
// of the transport stand in weft/tls/error.hpp, and errc::not_connected says that there was no handshake.
template <tls_transport Stream>
class tls_stream {
 public:
  using source = std::source_location;
  using next_layer_type = Stream;

  template <tls_context_like Context>
  tls_stream(Stream transport, Context&& context)
      : link_(std::make_unique<detail::tls_link<Stream>>(std::move(transport), context.native_handle())) {}

  // Agrees on keys with the other side. As a client it refuses a server whose certificate is not trusted or is for
  // another host: the reason is then in certificate_category().
  void handshake(const tls_client& as, source where = source::current()) const {
    check(link().handshake(as, where), "TLS handshake with");
  }
  void handshake(const tls_client& as, std::error_code& why, source where = source::current()) const {
    why = link().handshake(as, where);
  }
  void handshake(const tls_server& as, source where = source::current()) const {
    check(link().handshake(as, where), "TLS handshake with");
  }
  void handshake(const tls_server& as, std::error_code& why, source where = source::current()) const {
    why = link().handshake(as, where);
  }

  // Returns 0 when the other side has said that nothing more comes. A connection that just ends is an error,
  // tls_errc::truncated.
  std::size_t read_some(mutable_buffer to, source where = source::current()) const {
    return read_some(std::span(&to, 1), where);
  }
  std::size_t read_some(mutable_buffer to, std::error_code& why, source where = source::current()) const {
    return read_some(std::span(&to, 1), why, where);
  }
  std::size_t read_some(std::span<const mutable_buffer> to, source where = source::current()) const {
    std::error_code why;
    const std::size_t n = read_some(to, why, where);
    check(why, "read from");
    return n;
  }
  std::size_t read_some(std::span<const mutable_buffer> to, std::error_code& why,
                        source where = source::current()) const {
    return link().read(to, why, where);
  }
  void read_exactly(mutable_buffer to, source where = source::current()) const {
    std::error_code why;
    (void)read_exactly(to, why, where);
    check(why, "read from");
  }
  std::size_t read_exactly(mutable_buffer to, std::error_code& why, source where = source::current()) const {
    std::size_t done = 0;
    do {
      const std::size_t n = read_some(to.after(done), why, where);
      if (n == 0 && !why && to.size() != 0) why = io_errc::stream_ended;
      done += n;
    } while (!why && done < to.size());
    return done;
  }

  // Writes at most one record, 16 KiB.
  std::size_t write_some(const_buffer from, source where = source::current()) const {
    return write_some(std::span(&from, 1), where);
  }
  std::size_t write_some(const_buffer from, std::error_code& why, source where = source::current()) const {
    return write_some(std::span(&from, 1), why, where);
  }
  std::size_t write_some(std::span<const const_buffer> from, source where = source::current()) const {
    std::error_code why;
    const std::size_t n = write_some(from, why, where);
    check(why, "write to");
    return n;
  }
  std::size_t write_some(std::span<const const_buffer> from, std::error_code& why,
                         source where = source::current()) const {
    return link().write(from, why, where);
  }
  void write_all(const_buffer from, source where = source::current()) const {
    std::error_code why;
    (void)write_all(from, why, where);
    check(why, "write to");
  }
  std::size_t write_all(const_buffer from, std::error_code& why, source where = source::current()) const {
    std::size_t done = 0;
    do done += write_some(from.after(done), why, where);
    while (!why && done < from.size());
    return done;
  }

  // Says that nothing more comes (close_notify); reading goes on. Without it the other side takes the end of the
  // connection for an attack, or an accident.
  void shutdown(source where = source::current()) const { check(link().close_notify(where), "TLS shutdown with"); }
  void shutdown(std::error_code& why, source where = source::current()) const { why = link().close_notify(where); }
  // Closes the transport without a word. Another task that waits gets errc::operation_canceled.
  void close() const noexcept {
    if (link_ != nullptr) link_->transport().close();
  }
  [[nodiscard]] bool is_open() const noexcept { return link_ != nullptr && link_->transport().is_open(); }

  [[nodiscard]] Stream& next_layer() const { return link().transport(); }
  // For what OpenSSL can be told and asked beside this. Before the handshake, or while no task uses the stream.
  [[nodiscard]] SSL* native_handle() const { return link().native_handle(); }

 private:
  [[nodiscard]] detail::tls_link<Stream>& link() const {
    if (link_ == nullptr) detail::throw_usage("a TLS stream is used that was moved from");
    return *link_;
  }
  void check(const std::error_code& why, const char* operation) const {
    if (why) io::throw_if(why, operation, next_layer().record());
  }
  std::unique_ptr<detail::tls_link<Stream>> link_;
};

template <class Stream, class Context>
tls_stream(Stream, Context&&) -> tls_stream<Stream>;

}  // namespace weft::inline v1
