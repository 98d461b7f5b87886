// Errors of TLS, in two categories beside those of the system.
#pragma once

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <string>
#include <system_error>

#include <weft/detail/config.hpp>

namespace weft::inline v1 {

enum class tls_errc {
  // The connection ended, but the other side had not said that nothing more comes (close_notify). Somebody in between may
  // have cut it off, so what was read may not be all.
  truncated = 1,
  // An earlier write was cancelled or failed when it was encrypted already. The other side may still get all of it, so
  // nothing may be written behind it, least of all the same again.
  unfinished_write = 2,
};

// The values of tls_errc, and OpenSSL's own error numbers as ERR_get_error() has them, which are all much larger.
[[nodiscard]] WEFT_API inline const std::error_category& tls_category() noexcept {
  class category final : public std::error_category {
   public:
    [[nodiscard]] const char* name() const noexcept override { return "weft.tls"; }
    [[nodiscard]] std::string message(int code) const override {
      if (code == static_cast<int>(tls_errc::truncated))
        return "the connection ended without close_notify: what was read may not be all";
      if (code == static_cast<int>(tls_errc::unfinished_write))
        return "an earlier write was cancelled or failed half-way: close the stream";
      char text[256];
      ERR_error_string_n(static_cast<unsigned>(code), text, sizeof text);
      return text;
    }
  };
  static const category the_category;
  return the_category;
}

// Why a certificate is not trusted: X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_CERT_HAS_EXPIRED, …
[[nodiscard]] WEFT_API inline const std::error_category& certificate_category() noexcept {
  class category final : public std::error_category {
   public:
    [[nodiscard]] const char* name() const noexcept override { return "weft.certificate"; }
    [[nodiscard]] std::string message(int code) const override {
      return std::string("the certificate is not trusted: ") + X509_verify_cert_error_string(code);
    }
  };
  static const category the_category;
  return the_category;
}

[[nodiscard]] inline std::error_code make_error_code(tls_errc e) noexcept {
  return {static_cast<int>(e), tls_category()};
}

namespace detail {

// The oldest error that OpenSSL has noted for this thread. To be called right after the call that failed: the note
// belongs to the thread, and a task that has waited may run on another.
[[nodiscard]] inline std::error_code noted_tls_error() noexcept {
  const unsigned long number = ERR_get_error();
  if (number == 0) return std::make_error_code(std::errc::protocol_error);
  return {static_cast<int>(number), tls_category()};
}

}  // namespace detail

}  // namespace weft::inline v1

template <>
struct std::is_error_code_enum<weft::tls_errc> : std::true_type {};
