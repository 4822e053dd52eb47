// Who is calling: the check of a pod-bound token (authentication.k8s.io TokenReview).
//
// A pod holds a token that was issued for it and for one audience. The rendezvous hands what a
// caller presents to the reviewer and learns which pod it is; nothing that the caller says of
// itself is believed.
#ifndef RINGMASTER_OPERATOR_KUBE_TOKEN_REVIEWER_H_
#define RINGMASTER_OPERATOR_KUBE_TOKEN_REVIEWER_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "operator/kube/types.h"

namespace ringmaster::kube {

struct PodIdentity {
  ObjectKey pod;
  std::string uid;

  friend bool operator==(const PodIdentity&, const PodIdentity&) = default;
};

// Thread-safe; blocks as the client does.
class TokenReviewer {
 public:
  virtual ~TokenReviewer() = default;

  // The pod that the token was issued to. kUnauthenticated when the token is unknown, expired, for
  // another audience, or its pod (that uid) is gone; the message never repeats the token.
  virtual absl::StatusOr<PodIdentity> ReviewToken(std::string_view token,
                                                  std::string_view audience) = 0;
};

}  // namespace ringmaster::kube

#endif  // RINGMASTER_OPERATOR_KUBE_TOKEN_REVIEWER_H_
