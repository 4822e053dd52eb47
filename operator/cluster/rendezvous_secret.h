// What all operators of one installation share: the secret that round keys are derived from and the
// certificate of the rendezvous. It lies in a Secret of the operators' namespace, so that a worker
// of a round that one operator formed can go on with the next (operator/rendezvous/round_key.h).
//
//   round-secret    32 random bytes
//   tls.crt tls.key the certificate, for contract::kRendezvousServerName, and its key
//   ca.crt          who has signed it; left out where it has signed itself
//
// The first operator makes it; an own one may be put there before, and cert-manager may keep the
// certificate. To replace it delete it and restart the operators; workers that run lose their
// operator then, since they know the old certificate only.
#ifndef RINGMASTER_OPERATOR_CLUSTER_RENDEZVOUS_SECRET_H_
#define RINGMASTER_OPERATOR_CLUSTER_RENDEZVOUS_SECRET_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/certificate.h"
#include "common/clock.h"
#include "operator/kube/client.h"

namespace ringmaster::cluster {

struct RendezvousSecret {
  std::string round_secret;
  Certificate certificate;
  std::string ca_pem;  // what workers are told to trust
};

// The stored one, or a new one that is stored before it is returned; of several operators that race
// all get the same. kFailedPrecondition, with the Secret's name, when what is stored cannot be
// used: a key is missing, or the certificate has expired. Errors of the client are returned as they
// are.
absl::StatusOr<RendezvousSecret> LoadOrCreateRendezvousSecret(kube::Client& client,
                                                              const kube::ObjectKey& key,
                                                              const Clock& clock);

}  // namespace ringmaster::cluster

#endif  // RINGMASTER_OPERATOR_CLUSTER_RENDEZVOUS_SECRET_H_
