// What TLS streams share: the certificates one shows, and those one trusts.
//
//   weft::tls_context client = weft::tls_context::client();                        // trusts what the system trusts
//   weft::tls_context server = weft::tls_context::server("chain.pem", "key.pem");
//
// An asio::ssl::context serves as well: whatever has a native_handle() that is an SSL_CTX*.
#pragma once

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <climits>
#include <concepts>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include <weft/tls/error.hpp>

namespace weft::inline v1 {

template <class C>
concept tls_context_like = requires(C& c) {
  { c.native_handle() } -> std::convertible_to<SSL_CTX*>;
};

namespace detail {

template <auto Free>
struct openssl_free {
  void operator()(auto* p) const noexcept { Free(p); }
};
using bio_ptr = std::unique_ptr<BIO, openssl_free<BIO_free_all>>;
using x509_ptr = std::unique_ptr<X509, openssl_free<X509_free>>;
using key_ptr = std::unique_ptr<EVP_PKEY, openssl_free<EVP_PKEY_free>>;

}  // namespace detail

// TLS 1.2 and later. All functions throw std::system_error that says what OpenSSL says. Set it up before streams are
// made with it; streams keep what they need of it alive.
class tls_context {
 public:
  // For connecting to others: trusts the certificate authorities that the system trusts.
  [[nodiscard]] static tls_context client() {
    tls_context c;
    ERR_clear_error();
    check(SSL_CTX_set_default_verify_paths(c.native_handle()), "trust what the system trusts");
    return c;
  }
  // For being connected to. Both files are PEM; the chain begins with the server's own certificate.
  [[nodiscard]] static tls_context server(const std::string& chain_file, const std::string& key_file) {
    tls_context c;
    ERR_clear_error();
    check(SSL_CTX_use_certificate_chain_file(c.native_handle(), chain_file.c_str()),
          "use the certificates of " + chain_file);
    check(SSL_CTX_use_PrivateKey_file(c.native_handle(), key_file.c_str(), SSL_FILETYPE_PEM),
          "use the private key of " + key_file);
    return c;
  }
  // Trusts nobody and shows nothing yet.
  tls_context() : handle_(SSL_CTX_new(TLS_method())) {
    if (handle_ == nullptr) throw std::system_error(detail::noted_tls_error(), "make a TLS context");
    SSL_CTX_set_min_proto_version(native_handle(), TLS1_2_VERSION);
  }

  // Trusts also these certificates, PEM text.
  void trust(std::string_view pem) {
    const detail::bio_ptr from = text(pem);
    ERR_clear_error();
    int count = 0;
    while (const auto one = detail::x509_ptr(PEM_read_bio_X509(from.get(), nullptr, nullptr, nullptr))) {
      check(X509_STORE_add_cert(SSL_CTX_get_cert_store(native_handle()), one.get()), "trust a certificate");
      ++count;
    }
    check(count, "read the certificates to be trusted");
    ERR_clear_error();  // that there was no further one
  }
  // Shows this certificate, PEM text; after it may stand those that vouch for it.
  void use_certificate(std::string_view chain_pem, std::string_view key_pem) {
    const detail::bio_ptr chain = text(chain_pem);
    const detail::bio_ptr key_text = text(key_pem);
    ERR_clear_error();
    const detail::x509_ptr own(PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr));
    check(own != nullptr && SSL_CTX_use_certificate(native_handle(), own.get()), "use a certificate");
    while (const auto one = detail::x509_ptr(PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)))
      check(static_cast<int>(SSL_CTX_add1_chain_cert(native_handle(), one.get())), "use a certificate that vouches");
    ERR_clear_error();
    const detail::key_ptr key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
    check(key != nullptr && SSL_CTX_use_PrivateKey(native_handle(), key.get()), "use a private key");
  }

  // For everything else that OpenSSL can be told.
  [[nodiscard]] SSL_CTX* native_handle() const noexcept { return handle_.get(); }

 private:
  static void check(int result, const std::string& what) {
    if (result <= 0) throw std::system_error(detail::noted_tls_error(), what);
  }
  static detail::bio_ptr text(std::string_view pem) {
    if (pem.size() > INT_MAX) throw std::bad_alloc();
    detail::bio_ptr b(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    if (b == nullptr) throw std::bad_alloc();
    return b;
  }
  std::unique_ptr<SSL_CTX, detail::openssl_free<SSL_CTX_free>> handle_;
};

}  // namespace weft::inline v1
