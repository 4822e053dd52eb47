// The key with which the members of a round prove themselves to one another.
//
// It must be the same for every member, also for one that is told of the round by another operator
// than its peers were: the old one died between two announcements, or a standby took over. A random
// key kept in memory would leave such a round with two keys and nobody connected. So the key is
// derived, by HMAC-SHA-256, from a secret that outlives the operator (a file beside the store's
// journal on a laptop, a Secret on a cluster) and from what the round is: job, number, and the UIDs
// of its members in order. UIDs never come again, so neither does a key, not even for a job that is
// deleted and made anew with the same name. Workers never learn the secret.
//
// A worker that re-attaches in a round keeps its connections and the key that it has; both are
// still right.
#ifndef RINGMASTER_OPERATOR_RENDEZVOUS_ROUND_KEY_H_
#define RINGMASTER_OPERATOR_RENDEZVOUS_ROUND_KEY_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "operator/kube/types.h"
#include "operator/reconcile/worker_command.h"

namespace ringmaster::rendezvous {

// 32 bytes.
std::string RoundKey(std::string_view secret, const kube::ObjectKey& job,
                     const reconcile::Announcement& round);

// The secret in the file, or a new one of 32 random bytes, stored there for its owner's eyes alone
// before it is returned. kDataLoss when the file holds something else. Blocks on the disk; callers
// must not race for the same path (`ringmaster run` holds its folder's lock).
absl::StatusOr<std::string> LoadOrCreateSecret(const std::string& path);

}  // namespace ringmaster::rendezvous

#endif  // RINGMASTER_OPERATOR_RENDEZVOUS_ROUND_KEY_H_
