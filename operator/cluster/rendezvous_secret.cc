#include "operator/cluster/rendezvous_secret.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/base64.h"
#include "common/contract.h"
#include "common/log.h"
#include "common/sha256.h"
#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/object.h"

namespace ringmaster::cluster {
namespace {

using kube::Json;

constexpr char kRoundSecret[] = "round-secret";
constexpr char kCertificate[] = "tls.crt";
constexpr char kPrivateKey[] = "tls.key";
constexpr char kAuthority[] = "ca.crt";

constexpr size_t kSecretBytes = 32;
constexpr auto kLifetime = std::chrono::hours(24 * 3650);
constexpr auto kExpiresSoon = std::chrono::hours(24 * 30);

absl::StatusOr<Json> MakeSecret(const kube::ObjectKey& key, const Clock& clock) {
  RM_ASSIGN_OR_RETURN(
      const Certificate certificate,
      SelfSignedCertificate(contract::kRendezvousServerName, clock.Now(), kLifetime));
  Json secret = kube::NewObject(kube::kSecret, key);
  kube::SetLabel(secret, contract::kLabelManagedBy, "ringmaster");
  secret["type"] = "Opaque";
  secret["data"] = {{kRoundSecret, EncodeBase64(RandomBytes(kSecretBytes))},
                    {kCertificate, EncodeBase64(certificate.certificate_pem)},
                    {kPrivateKey, EncodeBase64(certificate.key_pem)}};
  return secret;
}

absl::StatusOr<Json> GetOrCreate(kube::Client& client, const kube::ObjectKey& key,
                                 const Clock& clock) {
  absl::StatusOr<Json> stored = client.Get(kube::kSecret, key);
  if (!kube::IsNotFound(stored.status())) return stored;
  RM_ASSIGN_OR_RETURN(const Json made, MakeSecret(key, clock));
  stored = client.Create(kube::kSecret, made);
  // Another operator was faster: its secret is the one.
  if (kube::IsAlreadyExists(stored.status())) return client.Get(kube::kSecret, key);
  return stored;
}

absl::StatusOr<std::string> Entry(const Json& secret, const char* name) {
  const std::string text = kube::FindString(secret, {"data", name});
  auto value = DecodeBase64(text);
  if (value.ok() && !value->empty()) return value;
  return absl::FailedPreconditionError(fmt::format("no {}", name));
}

absl::StatusOr<RendezvousSecret> Read(const Json& secret, const Clock& clock) {
  RendezvousSecret read;
  RM_ASSIGN_OR_RETURN(read.round_secret, Entry(secret, kRoundSecret));
  RM_ASSIGN_OR_RETURN(read.certificate.certificate_pem, Entry(secret, kCertificate));
  RM_ASSIGN_OR_RETURN(read.certificate.key_pem, Entry(secret, kPrivateKey));
  read.ca_pem = Entry(secret, kAuthority).value_or(read.certificate.certificate_pem);
  const auto expires = ExpiryOf(read.certificate.certificate_pem);
  if (!expires.ok())
    return absl::FailedPreconditionError(fmt::format("{} is no certificate", kCertificate));
  if (*expires <= clock.Now())
    return absl::FailedPreconditionError(
        fmt::format("its certificate has expired on {}", FormatTime(*expires)));
  if (*expires - clock.Now() < kExpiresSoon) {
    log::Warning("the rendezvous' certificate expires soon",
                 {{"secret", kube::KeyOf(secret).ToString()}, {"on", FormatTime(*expires)}});
  }
  return read;
}

}  // namespace

absl::StatusOr<RendezvousSecret> LoadOrCreateRendezvousSecret(kube::Client& client,
                                                              const kube::ObjectKey& key,
                                                              const Clock& clock) {
  RM_ASSIGN_OR_RETURN(const Json secret, GetOrCreate(client, key, clock));
  auto read = Read(secret, clock);
  if (read.ok()) return read;
  return absl::Status(
      read.status().code(),
      fmt::format("Secret {}: {}; mend it, or delete it and the operator makes another",
                  key.ToString(), Message(read.status())));
}

}  // namespace ringmaster::cluster
