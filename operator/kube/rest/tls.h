// What TLS connections to the API server trust, and what they show: one context of OpenSSL's, which
// all of a transport's connections share.
//
// The server's certificate is checked by OpenSSL alone, for the name or the address that was asked
// for; with an authority given, the system's authorities are not trusted, and it need not be a
// root.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_TLS_H_
#define RINGMASTER_OPERATOR_KUBE_REST_TLS_H_

#include <memory>
#include <mutex>
#include <string>

#include <openssl/ssl.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ringmaster::kube::rest {

struct TlsOptions {
  std::string peer;  // the DNS name or the address (IPv6 without brackets) to verify
  std::string ca_pem;
  std::string client_certificate_pem;
  std::string client_key_pem;
  bool insecure_skip_verify = false;
};

// Thread-safe. Must outlive the handshakes of its connections.
class TlsSetup {
 public:
  // kInvalidArgument names the certificate or key that cannot be read, or does not fit the other.
  static absl::StatusOr<std::shared_ptr<TlsSetup>> Create(TlsOptions options);

  // The context, of which the caller frees its reference.
  SSL_CTX* ShareContext() const;
  // Names the server in the handshake, unless it is an address.
  void NameServer(SSL* connection) const;

  // Why the last certificate was refused, and forgets it; "" when none was.
  std::string TakeProblem();

 private:
  explicit TlsSetup(TlsOptions options) : options_(std::move(options)) {}

  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  absl::Status Configure();
  static int VerifyPeer(X509_STORE_CTX* chain, void* self);

  const TlsOptions options_;
  bool peer_is_address_ = false;
  std::unique_ptr<SSL_CTX, FreeContext> context_;
  std::mutex mutex_;
  std::string problem_;  // guarded by mutex_
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_TLS_H_
