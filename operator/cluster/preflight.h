// What an operator looks at before it begins on a cluster, so that what is missing there is said at
// once and in words, not as a stream of refused calls.
#ifndef RINGMASTER_OPERATOR_CLUSTER_PREFLIGHT_H_
#define RINGMASTER_OPERATOR_CLUSTER_PREFLIGHT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "operator/kube/client.h"
#include "operator/reconcile/gang_api.h"

namespace ringmaster::cluster {

inline constexpr kube::ResourceType kCustomResourceDefinition{
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false};
inline constexpr kube::ResourceType kSelfSubjectAccessReview{
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", false};

// One thing that an account must be allowed to do.
struct Permission {
  std::string group;
  std::string resource;  // "trainingjobs" or, with the subresource, "trainingjobs/status"
  std::string verb;
  std::string ns;    // empty: everywhere
  std::string name;  // empty: any

  // "patch trainingjobs.training.ringmaster.dev/status everywhere", for messages.
  std::string ToString() const;
};

// What the operator does: in the watched namespace (empty: in all), with leases and the rendezvous'
// secret in its own, and with TokenReviews. charts/ringmaster/files/rbac.json grants exactly this,
// to read the CustomResourceDefinition, and GangPermissions.
std::vector<Permission> NeededPermissions(const std::string& watched_ns, const std::string& own_ns,
                                          const std::string& lease, const std::string& secret);

// What the operator does with pod groups of this API in the watched namespace (empty: in all). The
// chart's file has it under the API's name.
std::vector<Permission> GangPermissions(const reconcile::GangApi& api,
                                        const std::string& watched_ns);

// Whether the cluster's CustomResourceDefinition is this operator's. kFailedPrecondition, with what
// to do, when it is older: it lacks fields or values that this operator writes or obeys; or newer:
// the API server would let fields in, or add them as defaults, that this operator refuses as
// unknown. kNotFound, with what to do, when it is not there, which is to be believed only when it
// was said several times: an API server that is just starting says so too. kPermissionDenied where
// the account may not read it. Errors of the client are returned as they are.
absl::Status CheckDefinition(kube::Client& client);

// Whether the cluster serves TrainingJobs as this operator knows them: as CheckDefinition, but
// where the account may not read the definition, only whether TrainingJobs in `ns` can be listed is
// looked at.
absl::Status CheckCustomResource(kube::Client& client, const std::string& ns);

// Whether pod groups of this API may be used in `ns`. OK also where the cluster does not serve
// them, which it may do later.
absl::Status CheckGang(kube::Client& client, const reconcile::GangApi& api, const std::string& ns);

// kPermissionDenied names everything that this account may not do, and what grants it. OK also
// where the cluster does not answer such questions.
absl::Status CheckPermissions(kube::Client& client, const std::vector<Permission>& needed);

}  // namespace ringmaster::cluster

#endif  // RINGMASTER_OPERATOR_CLUSTER_PREFLIGHT_H_
