#include "common/certificate.h"

#include <ctime>
#include <memory>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "common/status.h"

namespace ringmaster {
namespace {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, Deleter<X509_free>>;
using Bio = std::unique_ptr<BIO, Deleter<BIO_free_all>>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;

absl::Status Failed(const char* what) {
  return absl::InternalError(fmt::format("OpenSSL: {} failed", what));
}

bool AddExtension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool SetSerialNumber(X509* certificate) {
  std::uint64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1) return false;
  return ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1;
}

bool SetTimes(X509* certificate, Time from, Time until) {
  const std::time_t begin = std::chrono::system_clock::to_time_t(from);
  const std::time_t end = std::chrono::system_clock::to_time_t(until);
  return ASN1_TIME_set(X509_getm_notBefore(certificate), begin) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), end) != nullptr;
}

bool SetNames(X509* certificate, const std::string& name) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                                    0) == 1 &&
         X509_set_issuer_name(certificate, subject) == 1 &&
         AddExtension(certificate, NID_subject_alt_name, "DNS:" + name) &&
         AddExtension(certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
         AddExtension(certificate, NID_key_usage, "critical,digitalSignature,keyCertSign") &&
         AddExtension(certificate, NID_ext_key_usage, "serverAuth");
}

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace

absl::StatusOr<Certificate> SelfSignedCertificate(const std::string& name, Time now,
                                                  Duration lifetime) {
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("making a key");
  const X509Ptr certificate(X509_new());
  if (certificate == nullptr || X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      !SetSerialNumber(certificate.get()) ||
      !SetTimes(certificate.get(), now - std::chrono::hours(1), now + lifetime) ||
      X509_set_pubkey(certificate.get(), key.get()) != 1 || !SetNames(certificate.get(), name) ||
      X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) {
    return Failed("making a certificate");
  }
  const Bio certificate_text(BIO_new(BIO_s_mem()));
  const Bio key_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1) {
    return Failed("writing a certificate");
  }
  return Certificate{TextOf(certificate_text.get()), TextOf(key_text.get())};
}

absl::StatusOr<Time> ExpiryOf(std::string_view certificate_pem) {
  const Bio text(BIO_new_mem_buf(certificate_pem.data(), static_cast<int>(certificate_pem.size())));
  const X509Ptr certificate(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
  std::tm parts{};
  if (certificate == nullptr ||
      ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &parts) != 1) {
    return absl::InvalidArgumentError("no PEM certificate");
  }
  return Time(std::chrono::seconds(::timegm(&parts)));
}

}  // namespace ringmaster
