// Certificates for tests: an authority, and what it says about servers. All of it stays in memory.
#pragma once

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <stdexcept>
#include <string>

#include <weft/tls/context.hpp>

namespace support {

struct identity {
  std::string certificate, key;  // PEM
};

class authority {
 public:
  authority() : key_(new_key()), own_(make("Authority of the tests", "", -day, day, key_.get(), nullptr)) {}

  // A certificate for the host `name`, valid from `from` to `until`, in seconds from now.
  [[nodiscard]] identity issue(const std::string& name, long from = -day, long until = day) const {
    const key_ptr key = new_key();
    const x509_ptr certificate = make(name, "DNS:" + name + ",IP:127.0.0.1", from, until, key.get(), own_.get());
    return {text(PEM_write_bio_X509, certificate.get()), key_text(key.get())};
  }
  [[nodiscard]] std::string pem() const { return text(PEM_write_bio_X509, own_.get()); }

  static constexpr long day = 86'400;

 private:
  using key_ptr = weft::detail::key_ptr;
  using x509_ptr = weft::detail::x509_ptr;
  using bio_ptr = weft::detail::bio_ptr;

  static key_ptr new_key() { return key_ptr(EVP_EC_gen("P-256")); }
  static std::string content(const bio_ptr& b) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(b.get(), &data);
    return {data, static_cast<std::size_t>(size)};
  }
  static std::string text(auto write, auto* object) {
    const bio_ptr b(BIO_new(BIO_s_mem()));
    write(b.get(), object);
    return content(b);
  }
  static std::string key_text(EVP_PKEY* key) {
    const bio_ptr b(BIO_new(BIO_s_mem()));
    PEM_write_bio_PrivateKey(b.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
    return content(b);
  }
  static void extend(X509* c, X509* issuer, int what, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, c, nullptr, nullptr, 0);
    X509_EXTENSION* e = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
    if (e == nullptr || X509_add_ext(c, e, -1) != 1) throw std::runtime_error("cannot make a certificate");
    X509_EXTENSION_free(e);
  }
  // By itself without an issuer.
  [[nodiscard]] x509_ptr make(const std::string& name, const std::string& hosts, long from, long until, EVP_PKEY* key,
                              X509* issuer) const {
    static long serial = 0;
    x509_ptr c(X509_new());
    X509_set_version(c.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(c.get()), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(c.get()), from);
    X509_gmtime_adj(X509_getm_notAfter(c.get()), until);
    X509_set_pubkey(c.get(), key);
    X509_NAME* subject = X509_get_subject_name(c.get());
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(name.c_str()), -1,
                               -1, 0);
    X509_set_issuer_name(c.get(), issuer == nullptr ? subject : X509_get_subject_name(issuer));
    extend(c.get(), issuer == nullptr ? c.get() : issuer, NID_basic_constraints,
           issuer == nullptr ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (!hosts.empty()) extend(c.get(), issuer, NID_subject_alt_name, hosts);
    X509_sign(c.get(), key_.get(), EVP_sha256());
    return c;
  }

  key_ptr key_;
  x509_ptr own_;
};

inline const char* const test_host = "server.test";

// What most tests need, made once: a good server, and a client that trusts it.
struct test_contexts {
  test_contexts() {
    const identity good = ca.issue(test_host);
    server.use_certificate(good.certificate, good.key);
    client.trust(ca.pem());
  }
  authority ca;
  weft::tls_context server, client;
};
[[nodiscard]] inline const test_contexts& contexts() {
  static const test_contexts all;
  return all;
}

}  // namespace support
