#include "operator/cluster/preflight.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/contract.h"
#include "common/log.h"
#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/object.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"

namespace ringmaster::cluster {
namespace {

using kube::Json;

constexpr size_t kNamedAtMost = 5;
constexpr int kReviewTries = 3;
constexpr char kCrdMend[] =
    "apply crds/ of this operator's version (kubectl apply --server-side -f crds/), or upgrade the "
    "chart";
constexpr char kOperatorMend[] =
    "run an operator of the definition's version (upgrade the chart), or go back to crds/ of this "
    "operator's";

// Field paths, and enum values as path=value, that only one of two schemas has.
struct Differences {
  std::vector<std::string> missing;  // not in the cluster's
  std::vector<std::string> unknown;  // not in ours
};

void CompareEnum(const schema::Enum& ours, const Json& node, const std::string& path,
                 Differences& found) {
  const Json* listed = kube::Find(node, {"enum"});
  const Json theirs = listed != nullptr && listed->is_array() ? *listed : Json::array();
  for (const schema::EnumValue& value : ours.values) {
    if (std::ranges::find(theirs, Json(value.name)) == theirs.end())
      found.missing.push_back(fmt::format("{}={}", path, value.name));
  }
  for (const Json& value : theirs) {
    const auto same = [&](const schema::EnumValue& known) { return value == Json(known.name); };
    if (std::ranges::none_of(ours.values, same))
      found.unknown.push_back(
          fmt::format("{}={}", path, value.is_string() ? value.get<std::string>() : value.dump()));
  }
}

std::string Under(const std::string& path, const std::string& name) {
  return path.empty() ? name : fmt::format("{}.{}", path, name);
}

// `openapi` is the cluster's schema of this message.
void Compare(const schema::Message& message, const Json& openapi, const std::string& path,
             Differences& found) {
  const Json* listed = kube::Find(openapi, {"properties"});
  const Json properties = listed != nullptr && listed->is_object() ? *listed : Json::object();
  for (const schema::Field& field : message.fields) {
    const std::string at = Under(path, field.name);
    const Json* node = kube::Find(properties, {field.name});
    if (node != nullptr && field.shape != schema::Shape::kSingle) {
      const bool list = field.shape == schema::Shape::kList;
      node = kube::Find(*node, {list ? "items" : "additionalProperties"});
    }
    if (node == nullptr) {
      found.missing.push_back(at);
    } else if (field.type == schema::Type::kMessage) {
      Compare(*field.message, *node, at, found);
    } else if (field.type == schema::Type::kEnum) {
      CompareEnum(*field.enumeration, *node, at, found);
    }
  }
  for (const auto& [name, node] : properties.items()) {
    if (schema::FindField(message, name) == nullptr) found.unknown.push_back(Under(path, name));
  }
}

const Json* VersionOf(const Json& crd, const std::string& version) {
  const Json* versions = kube::Find(crd, {"spec", "versions"});
  if (versions == nullptr || !versions->is_array()) return nullptr;
  for (const Json& entry : *versions) {
    if (kube::FindString(entry, {"name"}) == version && kube::FindBool(entry, {"served"}))
      return &entry;
  }
  return nullptr;
}

absl::Status NoCustomResource() {
  return absl::NotFoundError(
      fmt::format("the cluster does not know {}: {}", kube::kTrainingJob.Qualified(), kCrdMend));
}

absl::Status CheckServed(kube::Client& client, const std::string& ns) {
  const absl::Status listed = client.List(kube::kTrainingJob, ns, {.limit = 1}).status();
  return kube::IsNotFound(listed) ? NoCustomResource() : listed;
}

std::string NameSome(const std::vector<std::string>& names) {
  if (names.size() <= kNamedAtMost) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + kNamedAtMost, ", "),
                     names.size() - kNamedAtMost);
}

absl::Status Judge(const std::string& name, const Differences& found) {
  if (found.missing.empty() && found.unknown.empty()) return absl::OkStatus();
  if (found.unknown.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("the cluster's {} is older than this operator, it lacks {}: {}", name,
                    NameSome(found.missing), kCrdMend));
  }
  if (found.missing.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("the cluster's {} is newer than this operator, which does not know {} and "
                    "would refuse jobs that have it: {}",
                    name, NameSome(found.unknown), kOperatorMend));
  }
  return absl::FailedPreconditionError(fmt::format(
      "the cluster's {} is of another version than this operator, it lacks {} and has {}: {}", name,
      NameSome(found.missing), NameSome(found.unknown), kCrdMend));
}

Json ReviewOf(const Permission& permission) {
  const size_t slash = permission.resource.find('/');
  Json attributes = {{"group", permission.group},
                     {"resource", permission.resource.substr(0, slash)},
                     {"verb", permission.verb},
                     {"namespace", permission.ns},
                     {"name", permission.name}};
  if (slash != std::string::npos) attributes["subresource"] = permission.resource.substr(slash + 1);
  return {{"apiVersion", kSelfSubjectAccessReview.ApiVersion()},
          {"kind", kSelfSubjectAccessReview.kind},
          {"spec", {{"resourceAttributes", std::move(attributes)}}}};
}

// A review is stored nowhere, so it may be asked for again, which a client does not do with a
// Create on its own. With one try, some thirty reviews in a row would hardly ever come to an end
// while a tenth of all calls fail.
absl::StatusOr<Json> Review(kube::Client& client, const Permission& permission) {
  for (int left = kReviewTries - 1;; --left) {
    absl::StatusOr<Json> review = client.Create(kSelfSubjectAccessReview, ReviewOf(permission));
    const bool may_pass = absl::IsUnavailable(review.status()) || absl::IsAborted(review.status());
    if (!may_pass || left == 0) return review;
  }
}

}  // namespace

std::string Permission::ToString() const {
  const std::string where = ns.empty() ? "everywhere" : fmt::format("in namespace {}", ns);
  const std::string dot = group.empty() ? "" : ".";
  const std::string which = name.empty() ? "" : fmt::format(" {}", name);
  return fmt::format("{} {}{}{}{} {}", verb, resource, dot, group, which, where);
}

std::vector<Permission> NeededPermissions(const std::string& watched_ns, const std::string& own_ns,
                                          const std::string& lease, const std::string& secret) {
  std::vector<Permission> all;
  const auto add = [&all](const char* group, const char* resource,
                          std::initializer_list<const char*> verbs, const std::string& ns,
                          const std::string& name = "") {
    for (const char* verb : verbs) all.push_back({group, resource, verb, ns, name});
  };
  add(contract::kApiGroup, "trainingjobs", {"get", "list", "watch", "delete"}, watched_ns);
  add(contract::kApiGroup, "trainingjobs/status", {"patch"}, watched_ns);
  add(contract::kApiGroup, "trainingjobs/finalizers", {"update"}, watched_ns);
  add("", "pods", {"get", "list", "watch", "create", "delete"}, watched_ns);
  add("", "services", {"get", "list", "watch", "create", "delete"}, watched_ns);
  add("", "events", {"get", "create", "patch"}, watched_ns);
  add("coordination.k8s.io", "leases", {"create"}, own_ns);
  add("coordination.k8s.io", "leases", {"get", "update"}, own_ns, lease);
  add("", "secrets", {"create"}, own_ns);
  add("", "secrets", {"get"}, own_ns, secret);
  add("authentication.k8s.io", "tokenreviews", {"create"}, "");
  return all;
}

std::vector<Permission> GangPermissions(const reconcile::GangApi& api,
                                        const std::string& watched_ns) {
  std::vector<Permission> all;
  for (const char* verb : {"get", "list", "watch", "create", "patch", "delete"}) {
    all.push_back(
        {std::string(api.type.group), std::string(api.type.plural), verb, watched_ns, ""});
  }
  return all;
}

absl::Status CheckDefinition(kube::Client& client) {
  const std::string name = kube::kTrainingJob.Qualified();
  const absl::StatusOr<Json> crd = client.Get(kCustomResourceDefinition, {"", name});
  if (kube::IsNotFound(crd.status())) return NoCustomResource();
  if (!crd.ok()) return crd.status();
  const std::string version(kube::kTrainingJob.version);
  const Json* served = VersionOf(*crd, version);
  if (served == nullptr) {
    return absl::FailedPreconditionError(
        fmt::format("the cluster's {} does not serve version {}: {}", name, version, kCrdMend));
  }
  const Json* openapi = kube::Find(*served, {"schema", "openAPIV3Schema"});
  Differences found;
  Compare(training::v1alpha1::SchemaOf<training::v1alpha1::TrainingJob>(),
          openapi == nullptr ? Json::object() : *openapi, "", found);
  return Judge(name, found);
}

absl::Status CheckCustomResource(kube::Client& client, const std::string& ns) {
  const absl::Status current = CheckDefinition(client);
  if (!absl::IsPermissionDenied(current)) return current;
  log::Warning("may not read the CustomResourceDefinition: not checked whether it is current",
               {{"name", kube::kTrainingJob.Qualified()}});
  return CheckServed(client, ns);
}

absl::Status CheckPermissions(kube::Client& client, const std::vector<Permission>& needed) {
  std::vector<std::string> missing;
  for (const Permission& permission : needed) {
    const absl::StatusOr<Json> review = Review(client, permission);
    if (kube::IsNotFound(review.status()) || absl::IsPermissionDenied(review.status())) {
      log::Warning("the cluster does not say what this account may do",
                   {{"error", review.status()}});
      return absl::OkStatus();
    }
    if (!review.ok()) return review.status();
    if (!kube::FindBool(*review, {"status", "allowed"})) missing.push_back(permission.ToString());
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::PermissionDeniedError(fmt::format(
      "this operator's account may not {}: grant it what charts/ringmaster/files/rbac.json lists",
      fmt::join(missing, "; ")));
}

absl::Status CheckGang(kube::Client& client, const reconcile::GangApi& api, const std::string& ns) {
  const absl::Status listed = client.List(api.type, ns, {.limit = 1}).status();
  if (kube::IsNotFound(listed)) return absl::OkStatus();
  RM_RETURN_IF_ERROR(listed);
  return CheckPermissions(client, GangPermissions(api, ns));
}

}  // namespace ringmaster::cluster
