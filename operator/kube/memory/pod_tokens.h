// The tokens that the store has issued to pods. They live in memory alone, as the processes that
// hold them do not outlive the run; only their digests are kept. Not thread-safe; the store
// serialises.
#ifndef RINGMASTER_OPERATOR_KUBE_MEMORY_POD_TOKENS_H_
#define RINGMASTER_OPERATOR_KUBE_MEMORY_POD_TOKENS_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "operator/kube/token_reviewer.h"

namespace ringmaster::kube::memory {

class PodTokens {
 public:
  // A new token of 256 random bits, in hexadecimal.
  std::string Issue(PodIdentity pod, std::string_view audience, Time expires, Time now);
  // Whom the token was issued to; nothing when it is unknown, expired or for another audience.
  std::optional<PodIdentity> Find(std::string_view token, std::string_view audience,
                                  Time now) const;

 private:
  struct Grant {
    PodIdentity pod;
    std::string audience;
    Time expires;
  };

  std::map<std::string, Grant> grants_;  // by the token's SHA-256
};

}  // namespace ringmaster::kube::memory

#endif  // RINGMASTER_OPERATOR_KUBE_MEMORY_POD_TOKENS_H_
