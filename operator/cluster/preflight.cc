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
constexpr char kCrdMend[] =
    "apply crds/ of this operator's version (kubectl apply --server-side -f crds/), or upgrade the "
    "chart";

// Field paths and enum values of `message` that the OpenAPI schema lacks.
void FindMissing(const schema::Message& message, const Json& openapi, const std::string& path,
                 std::vector<std::string>& missing) {
  const Json* properties = kube::Find(openapi, {"properties"});
  for (const schema::Field& field : message.fields) {
    const std::string at = path.empty() ? field.name : fmt::format("{}.{}", path, field.name);
    const Json* node = properties == nullptr ? nullptr : kube::Find(*properties, {field.name});
    if (node != nullptr && field.shape != schema::Shape::kSingle) {
      const bool list = field.shape == schema::Shape::kList;
      node = kube::Find(*node, {list ? "items" : "additionalProperties"});
    }
    if (node == nullptr) {
      missing.push_back(at);
    } else if (field.type == schema::Type::kMessage) {
      FindMissing(*field.message, *node, at, missing);
    } else if (field.type == schema::Type::kEnum) {
      const Json* values = kube::Find(*node, {"enum"});
      for (const schema::EnumValue& value : field.enumeration->values) {
        if (values == nullptr || std::ranges::find(*values, Json(value.name)) == values->end())
          missing.push_back(fmt::format("{}={}", at, value.name));
      }
    }
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
  return absl::FailedPreconditionError(
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

absl::Status CheckCustomResource(kube::Client& client, const std::string& ns) {
  const std::string name = kube::kTrainingJob.Qualified();
  const absl::StatusOr<Json> crd = client.Get(kCustomResourceDefinition, {"", name});
  if (kube::IsNotFound(crd.status())) return NoCustomResource();
  if (absl::IsPermissionDenied(crd.status())) {
    log::Warning("may not read the CustomResourceDefinition: not checked whether it is current",
                 {{"name", name}});
    return CheckServed(client, ns);
  }
  if (!crd.ok()) return crd.status();
  const std::string version(kube::kTrainingJob.version);
  const Json* served = VersionOf(*crd, version);
  if (served == nullptr) {
    return absl::FailedPreconditionError(
        fmt::format("the cluster's {} does not serve version {}: {}", name, version, kCrdMend));
  }
  const Json* openapi = kube::Find(*served, {"schema", "openAPIV3Schema"});
  std::vector<std::string> missing;
  FindMissing(training::v1alpha1::SchemaOf<training::v1alpha1::TrainingJob>(),
              openapi == nullptr ? Json::object() : *openapi, "", missing);
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("the cluster's {} is older than this operator, it lacks {}: {}", name,
                  NameSome(missing), kCrdMend));
}

absl::Status CheckPermissions(kube::Client& client, const std::vector<Permission>& needed) {
  std::vector<std::string> missing;
  for (const Permission& permission : needed) {
    const absl::StatusOr<Json> review =
        client.Create(kSelfSubjectAccessReview, ReviewOf(permission));
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

}  // namespace ringmaster::cluster
