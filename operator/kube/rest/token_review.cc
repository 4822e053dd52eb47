// RestClient's side as a TokenReviewer.
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "operator/kube/object.h"
#include "operator/kube/rest/caller.h"
#include "operator/kube/rest/resource_path.h"
#include "operator/kube/rest/rest_client.h"

namespace ringmaster::kube::rest {
namespace {

constexpr ResourceType kTokenReview{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview",
                                    false};
constexpr auto kReplaceBadText = Json::error_handler_t::replace;
constexpr std::string_view kServiceAccountPrefix = "system:serviceaccount:";

// The only value of an extra field of the user; "" where it is not there.
std::string Extra(const Json& user, std::string_view name) {
  const Json* values = Find(user, {"extra", name});
  if (values == nullptr || !values->is_array() || values->size() != 1) return "";
  return values->front().is_string() ? values->front().get<std::string>() : "";
}

bool Contains(const Json* list, std::string_view text) {
  if (list == nullptr || !list->is_array()) return false;
  for (const Json& item : *list) {
    if (item.is_string() && item.get_ref<const std::string&>() == text) return true;
  }
  return false;
}

// "system:serviceaccount:NAMESPACE:NAME"
std::string NamespaceOf(const std::string& username) {
  if (!username.starts_with(kServiceAccountPrefix)) return "";
  const std::size_t begin = kServiceAccountPrefix.size();
  const std::size_t end = username.find(':', begin);
  return end == std::string::npos ? "" : username.substr(begin, end - begin);
}

}  // namespace

absl::StatusOr<PodIdentity> RestClient::ReviewToken(std::string_view token,
                                                    std::string_view audience) {
  const Json review = {{"apiVersion", kTokenReview.ApiVersion()},
                       {"kind", kTokenReview.kind},
                       {"spec", {{"token", token}, {"audiences", Json::array({audience})}}}};
  const auto reviewed = caller_->Call({.method = "POST",
                                       .path = CollectionPath(kTokenReview, ""),
                                       .content_type = "application/json",
                                       .body = review.dump(-1, ' ', false, kReplaceBadText)},
                                      /*repeatable=*/true, {});
  if (absl::IsUnauthenticated(reviewed.status())) {
    // It is this program that is not known, which says nothing of the token's owner.
    return absl::UnavailableError("TokenReview: " + Message(reviewed.status()));
  }
  RM_RETURN_IF_ERROR(reviewed.status());
  const Json& answer = *reviewed;
  const Json* status = Find(answer, {"status"});
  // A server that does not know audiences answers without them, and any token would do.
  if (status == nullptr || !FindBool(*status, {"authenticated"}) ||
      !Contains(Find(*status, {"audiences"}), audience)) {
    return absl::UnauthenticatedError("the token is not known to the cluster, or not for this use");
  }
  const Json* user = Find(*status, {"user"});
  PodIdentity identity;
  if (user != nullptr) {
    identity.pod = {NamespaceOf(FindString(*user, {"username"})),
                    Extra(*user, "authentication.kubernetes.io/pod-name")};
    identity.uid = Extra(*user, "authentication.kubernetes.io/pod-uid");
  }
  if (identity.pod.ns.empty() || identity.pod.name.empty() || identity.uid.empty()) {
    return absl::UnauthenticatedError("the token is not bound to a pod");
  }
  return identity;
}

}  // namespace ringmaster::kube::rest
