// Certificates that a service makes for itself. With sha256.h the adapter over OpenSSL.
// Thread-safe.
#ifndef RINGMASTER_COMMON_CERTIFICATE_H_
#define RINGMASTER_COMMON_CERTIFICATE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/clock.h"

namespace ringmaster {

// A certificate (or a chain, its own first) with its private key, both PEM text.
struct Certificate {
  std::string certificate_pem;
  std::string key_pem;
};

// A new key (ECDSA, P-256) and a certificate for `name` that it has signed itself: who is given the
// certificate as the only authority trusts this key and no other. Valid from an hour before `now`,
// for clocks that are behind, for `lifetime`.
absl::StatusOr<Certificate> SelfSignedCertificate(const std::string& name, Time now,
                                                  Duration lifetime);

// When the first certificate of the text expires. kInvalidArgument when there is none.
absl::StatusOr<Time> ExpiryOf(std::string_view certificate_pem);

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_CERTIFICATE_H_
