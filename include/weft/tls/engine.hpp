// One end of a TLS connection without a transport: ciphertext goes in and comes out as memory.
//
// OpenSSL allows no two calls on one SSL object at the same time. Every function here holds the lock for exactly one
// such call and for what belongs to it, and none waits for anything but the lock. OpenSSL notes errors per thread: the
// notes are cleared before a call and read right after it, inside of the lock, so that no wait comes in between.
//
// Taking the lock is never a cancellation point. A task that is cancelled between the transport and the engine would
// lose ciphertext that it holds, and with it the connection.
#pragma once

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <weft/buffer.hpp>
#include <weft/mutex.hpp>
#include <weft/tls/context.hpp>
#include <weft/tls/error.hpp>

namespace weft::inline v1 {

// As whom a stream shakes hands.
struct tls_client {
  // The server's name or IP address. The server is asked for this name (SNI), and its certificate has to be for it.
  std::string host;
  // Without it anybody can pretend to be the server.
  bool verify = true;
};
struct tls_server {};

namespace detail {

enum class tls_step { done, wants_input, ended, failed };

struct tls_outcome {
  tls_step step;
  std::size_t bytes = 0;
  std::error_code why{};         // of `failed`
  bool has_output = false;       // there is ciphertext to be sent, or some was taken and may not be sent yet
  bool is_in_handshake = false;  // the other side may wait for that ciphertext before it says more
};

class tls_engine {
 public:
  static constexpr std::size_t record_size = SSL3_RT_MAX_PLAIN_LENGTH;
  // More than this does not wait to be sent while anybody reads. A writer leaves one record; the rest are answers.
  static constexpr std::size_t most_output = 64 * 1024;

  explicit tls_engine(SSL_CTX* context) {
    ERR_clear_error();
    ssl_.reset(SSL_new(context));
    bio_ptr in(BIO_new(BIO_s_mem()));
    bio_ptr out(BIO_new(BIO_s_mem()));
    if (ssl_ == nullptr || in == nullptr || out == nullptr)
      throw std::system_error(noted_tls_error(), "make a TLS stream");
    SSL_set_bio(ssl_.get(), in.release(), out.release());
    // Renegotiation is refused: TLS 1.3 has none, and with it a write would have to wait for answers.
    SSL_set_options(ssl_.get(), SSL_OP_NO_RENEGOTIATION);
    SSL_set_mode(ssl_.get(), SSL_MODE_RELEASE_BUFFERS);  // an idle connection holds no records
  }

  [[nodiscard]] std::error_code begin(const tls_client& as) {
    const held lock(mutex_);
    // A zero byte would let OpenSSL see another name than the caller.
    if (as.host.find('\0') != std::string::npos || (as.verify && as.host.empty()))
      return std::make_error_code(std::errc::invalid_argument);
    ERR_clear_error();
    has_begun_ = true;
    SSL_set_connect_state(ssl_.get());
    SSL_set_verify(ssl_.get(), as.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, SSL_get_verify_callback(ssl_.get()));
    if (as.host.empty() || expect(as.host)) return {};
    return noted_tls_error();
  }
  void begin(const tls_server&) {
    const held lock(mutex_);
    has_begun_ = true;
    SSL_set_accept_state(ssl_.get());
  }

  [[nodiscard]] tls_outcome handshake() {
    return attempt([&](tls_outcome&) {
      const int result = SSL_do_handshake(ssl_.get());
      is_connected_ = is_connected_ || result == 1;
      return result;
    });
  }
  // Fills the buffers in order with what one record holds.
  [[nodiscard]] tls_outcome read(std::span<const mutable_buffer> to) {
    return attempt([&](tls_outcome& o) {
      if (!has_begun_) return objection(o, std::errc::not_connected);
      // Before anything is decrypted, so that no plaintext is lost.
      if (pending_output() > most_output) return objection(o, std::errc::protocol_error);
      for (const mutable_buffer& b : to)
        for (std::size_t at = 0, got = 0; at != b.size() && (o.bytes == 0 || SSL_pending(ssl_.get()) > 0); at += got) {
          if (const int result = SSL_read_ex(ssl_.get(), b.data() + at, b.size() - at, &got); result != 1)
            return o.bytes == 0 ? result : 1;  // if there is an error, the next call meets it again
          o.bytes += got;
        }
      return 1;
    });
  }
  // Encrypts as much as one record takes. It goes through whole, because memory takes every record.
  [[nodiscard]] tls_outcome write(std::span<const const_buffer> from) {
    return attempt([&](tls_outcome& o) {
      if (!is_connected_) return objection(o, std::errc::not_connected);
      if (has_said_goodbye()) return objection(o, std::errc::broken_pipe);
      const const_buffer record = joined(from);
      return SSL_write_ex(ssl_.get(), record.data(), record.size(), &o.bytes);
    });
  }
  // Says that nothing more comes, once. Without a handshake there is nobody to say it to. In the middle of a message from
  // the other side OpenSSL cannot say it, and wants the rest of that first.
  [[nodiscard]] tls_outcome close_notify() {
    return attempt([&](tls_outcome&) {
      if (!is_connected_ || has_said_goodbye()) return 1;
      if (const int whole = SSL_do_handshake(ssl_.get()); whole != 1) return whole;
      const int result = SSL_shutdown(ssl_.get());
      return result == 0 ? 1 : result;  // 0: the other side has not said it yet
    });
  }

  // Ciphertext that has come.
  void feed(const_buffer ciphertext) {
    const held lock(mutex_);
    ERR_clear_error();
    if (BIO_write(SSL_get_rbio(ssl_.get()), ciphertext.data(), static_cast<int>(ciphertext.size())) <= 0)
      throw std::bad_alloc();
  }
  // Moves the ciphertext that has to be sent into `to`; false if there is none. Whoever calls it has sent what it took
  // before: until then that counts as output.
  [[nodiscard]] bool take_output(std::vector<std::byte>& to) {
    const held lock(mutex_);
    BIO* const out = SSL_get_wbio(ssl_.get());
    is_sending_ = false;
    to.resize(BIO_ctrl_pending(out));
    is_sending_ = !to.empty() && BIO_read(out, to.data(), static_cast<int>(to.size())) > 0;
    return is_sending_;
  }
  [[nodiscard]] bool has_output() {
    const held lock(mutex_);
    return is_sending_ || pending_output() != 0;
  }
  [[nodiscard]] SSL* native_handle() const noexcept { return ssl_.get(); }

 private:
  class held {
   public:
    explicit held(mutex& m) noexcept : mutex_(m) { lock_uninterrupted(m); }
    ~held() { mutex_.unlock(); }
    held(const held&) = delete;
    held& operator=(const held&) = delete;

   private:
    mutex& mutex_;
  };

  // Makes one call of OpenSSL: call(o) returns what that call returned. Or it objects, and makes none.
  template <class Call>
  tls_outcome attempt(Call call) {
    const held lock(mutex_);
    if (failure_) return {.step = tls_step::failed, .why = failure_};
    tls_outcome o{.step = tls_step::done};
    ERR_clear_error();
    const int result = call(o);
    o.has_output = is_sending_ || pending_output() != 0;
    o.is_in_handshake = !is_connected_ && SSL_in_init(ssl_.get()) != 0;
    if (o.why) {
      o.step = tls_step::failed;
      return o;
    }
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_NONE: break;
      case SSL_ERROR_WANT_READ: o.step = tls_step::wants_input; break;
      case SSL_ERROR_ZERO_RETURN: o.step = tls_step::ended; break;
      default:  // OpenSSL wants no further call on this object
        o.step = tls_step::failed;
        o.why = failure_ = reason();
    }
    return o;
  }
  static int objection(tls_outcome& o, std::errc why) {
    o.why = std::make_error_code(why);
    return 0;
  }

  // What is wrong with the certificate says more than that it is not trusted, which is then the last note.
  [[nodiscard]] std::error_code reason() const {
    const unsigned long last = ERR_peek_last_error();
    const long result = SSL_get_verify_result(ssl_.get());
    if (ERR_GET_LIB(last) == ERR_LIB_SSL && ERR_GET_REASON(last) == SSL_R_CERTIFICATE_VERIFY_FAILED &&
        result != X509_V_OK)
      return {static_cast<int>(result), certificate_category()};
    return noted_tls_error();
  }

  // The certificate has to be for this host. A server is not asked for an address by name (RFC 6066).
  [[nodiscard]] bool expect(const std::string& host) {
    unsigned char address[16];
    if (inet_pton(AF_INET, host.c_str(), address) == 1 || inet_pton(AF_INET6, host.c_str(), address) == 1)
      return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str()) == 1;
    const std::string name = host.ends_with('.') ? host.substr(0, host.size() - 1) : host;
    SSL_set_hostflags(ssl_.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set_tlsext_host_name(ssl_.get(), name.c_str()) == 1 && SSL_set1_host(ssl_.get(), name.c_str()) == 1;
  }
  [[nodiscard]] std::size_t pending_output() const { return BIO_ctrl_pending(SSL_get_wbio(ssl_.get())); }
  [[nodiscard]] bool has_said_goodbye() const { return (SSL_get_shutdown(ssl_.get()) & SSL_SENT_SHUTDOWN) != 0; }

  // At most one record's plaintext in a row. Small buffers are copied together: a record of its own for each would cost
  // more than the copy.
  [[nodiscard]] const_buffer joined(std::span<const const_buffer> from) {
    while (!from.empty() && from.front().size() == 0) from = from.subspan(1);
    const const_buffer first = from.empty() ? const_buffer(nullptr, 0) : from.front();
    if (from.size() <= 1 || first.size() >= record_size) return {first.data(), std::min(first.size(), record_size)};
    joined_.clear();
    for (const const_buffer& b : from)
      joined_.insert(joined_.end(), b.data(), b.data() + std::min(b.size(), record_size - joined_.size()));
    return joined_;
  }

  mutex mutex_;
  std::unique_ptr<SSL, openssl_free<SSL_free>> ssl_;
  std::vector<std::byte> joined_;
  std::error_code failure_;  // OpenSSL has given up
  bool is_sending_ = false;  // somebody has taken output
  bool has_begun_ = false;
  bool is_connected_ = false;  // there was a handshake; SSL_in_init() is also true in the middle of later messages
};

}  // namespace detail

}  // namespace weft::inline v1
