#include "operator/kube/rest/tls.h"

#include <utility>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "common/status.h"

namespace ringmaster::kube::rest {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_STORE* store) const { X509_STORE_free(store); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(ASN1_OCTET_STRING* address) const { ASN1_OCTET_STRING_free(address); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

Owned<BIO> Reader(const std::string& pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// OpenSSL's own words never hold key material.
absl::Status Failed(const std::string& what) {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return absl::InvalidArgumentError(
      fmt::format("{}: {}", what, reason == nullptr ? "cannot be used" : reason));
}

// An encrypted key would have OpenSSL ask a person at the terminal.
int NoPassword(char*, int, int, void*) {
  return -1;
}

absl::Status TrustOnly(SSL_CTX* context, const std::string& pem) {
  Owned<X509_STORE> store(X509_STORE_new());
  const Owned<BIO> reader = Reader(pem);
  int count = 0;
  while (Owned<X509> certificate{PEM_read_bio_X509(reader.get(), nullptr, NoPassword, nullptr)}) {
    if (X509_STORE_add_cert(store.get(), certificate.get()) != 1) {
      return Failed("certificate authority");
    }
    ++count;
  }
  ERR_clear_error();  // the end of the text
  if (count == 0) {
    return absl::InvalidArgumentError("certificate authority: holds no PEM certificate");
  }
  SSL_CTX_set_cert_store(context, store.release());
  // An authority is trusted because it was given, whoever has signed it; kubectl sees it so, too.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
  return absl::OkStatus();
}

absl::Status ShowCertificate(SSL_CTX* context, const std::string& pem, const std::string& key_pem) {
  const Owned<BIO> reader = Reader(pem);
  const Owned<X509> leaf(PEM_read_bio_X509(reader.get(), nullptr, NoPassword, nullptr));
  if (!leaf || SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    return Failed("client certificate");
  }
  while (Owned<X509> link{PEM_read_bio_X509(reader.get(), nullptr, NoPassword, nullptr)}) {
    if (SSL_CTX_add0_chain_cert(context, link.get()) != 1) return Failed("client certificate");
    link.release();  // the context's now
  }
  ERR_clear_error();
  const Owned<BIO> key_reader = Reader(key_pem);
  const Owned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(key_reader.get(), nullptr, NoPassword, nullptr));
  if (!key || SSL_CTX_use_PrivateKey(context, key.get()) != 1) return Failed("client key");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<TlsSetup>> TlsSetup::Create(TlsOptions options) {
  std::shared_ptr<TlsSetup> setup(new TlsSetup(std::move(options)));
  setup->peer_is_address_ =
      Owned<ASN1_OCTET_STRING>(a2i_IPADDRESS(setup->options_.peer.c_str())) != nullptr;
  ERR_clear_error();
  setup->context_.reset(SSL_CTX_new(TLS_client_method()));
  RM_RETURN_IF_ERROR(setup->Configure());
  return setup;
}

absl::Status TlsSetup::Configure() {
  SSL_CTX* const context = context_.get();
  SSL_CTX_set_verify(context, options_.insecure_skip_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
                     nullptr);
  SSL_CTX_set_cert_verify_callback(context, &TlsSetup::VerifyPeer, this);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  X509_VERIFY_PARAM* parameters = SSL_CTX_get0_param(context);
  const int set = peer_is_address_
                      ? X509_VERIFY_PARAM_set1_ip_asc(parameters, options_.peer.c_str())
                      : X509_VERIFY_PARAM_set1_host(parameters, options_.peer.c_str(), 0);
  if (set != 1) return Failed("server name");
  if (!options_.ca_pem.empty()) {
    RM_RETURN_IF_ERROR(TrustOnly(context, options_.ca_pem));
  } else if (SSL_CTX_set_default_verify_paths(context) != 1) {
    return Failed("the system's certificate authorities");
  }
  if (options_.client_certificate_pem.empty()) return absl::OkStatus();
  return ShowCertificate(context, options_.client_certificate_pem, options_.client_key_pem);
}

SSL_CTX* TlsSetup::ShareContext() const {
  SSL_CTX_up_ref(context_.get());
  return context_.get();
}

void TlsSetup::NameServer(SSL* connection) const {
  if (!peer_is_address_) SSL_set_tlsext_host_name(connection, options_.peer.c_str());
}

// In place of the whole verification, to keep why a certificate was refused.
int TlsSetup::VerifyPeer(X509_STORE_CTX* chain, void* self) {
  X509_STORE_CTX_set_verify_cb(chain, [](int ok, X509_STORE_CTX*) { return ok; });
  const int verified = X509_verify_cert(chain);
  if (verified <= 0) {
    auto* setup = static_cast<TlsSetup*>(self);
    std::lock_guard lock(setup->mutex_);
    setup->problem_ = X509_verify_cert_error_string(X509_STORE_CTX_get_error(chain));
  }
  return verified;
}

std::string TlsSetup::TakeProblem() {
  std::lock_guard lock(mutex_);
  return std::exchange(problem_, {});
}

}  // namespace ringmaster::kube::rest
