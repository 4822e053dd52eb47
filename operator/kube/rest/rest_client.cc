#include "operator/kube/rest/rest_client.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/object.h"
#include "operator/kube/rest/caller.h"
#include "operator/kube/rest/resource_path.h"
#include "operator/kube/rest/rest_watch.h"

namespace ringmaster::kube::rest {
namespace {

constexpr char kJson[] = "application/json";
constexpr char kMergePatch[] = "application/merge-patch+json";
constexpr char kApplyPatch[] = "application/apply-patch+yaml";
constexpr std::chrono::seconds kWatchGrace{30};

// nlohmann throws for text that is not UTF-8.
absl::StatusOr<std::string> Dump(const Json& object) {
  try {
    return object.dump();
  } catch (const Json::exception&) {
    return BadRequest("the object holds text that is not UTF-8");
  }
}

absl::StatusOr<HttpRequest> WithBody(const char* method, std::string path, const char* type,
                                     const Json& body) {
  RM_ASSIGN_OR_RETURN(std::string text, Dump(body));
  return HttpRequest{
      .method = method, .path = std::move(path), .content_type = type, .body = std::move(text)};
}

const char* PolicyName(Propagation propagation) {
  switch (propagation) {
    case Propagation::kForeground:
      return "Foreground";
    case Propagation::kOrphan:
      return "Orphan";
    case Propagation::kBackground:
      break;
  }
  return "Background";
}

Json DeleteBody(const DeleteOptions& options) {
  Json body = {{"apiVersion", "v1"},
               {"kind", "DeleteOptions"},
               {"propagationPolicy", PolicyName(options.propagation)}};
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) {
    body["preconditions"]["resourceVersion"] = options.resource_version;
  }
  if (options.grace_period) body["gracePeriodSeconds"] = options.grace_period->count();
  return body;
}

absl::Status NoList(const std::string& path) {
  return absl::UnavailableError(fmt::format("GET {}: the answer is no list", path));
}

// Items of the built-in kinds come without apiVersion and kind.
absl::StatusOr<ObjectList> ParseList(const ResourceType& type, const std::string& path,
                                     Json answer) {
  ObjectList list;
  const auto items = answer.is_object() ? answer.find("items") : answer.end();
  if (items == answer.end() || !(items->is_array() || items->is_null())) return NoList(path);
  for (Json& item : *items) {
    if (!item.is_object()) return NoList(path);
    item["apiVersion"] = type.ApiVersion();
    item["kind"] = type.kind;
    list.items.push_back(std::make_shared<const Json>(std::move(item)));
  }
  list.resource_version = FindString(answer, {"metadata", "resourceVersion"});
  list.continue_token = FindString(answer, {"metadata", "continue"});
  return list;
}

bool ComesBefore(const ObjectPtr& a, const ObjectPtr& b) {
  return KeyOf(*a) < KeyOf(*b);
}

}  // namespace

RestClient::RestClient(std::unique_ptr<Caller> caller) : caller_(std::move(caller)) {}
RestClient::~RestClient() = default;

absl::StatusOr<std::unique_ptr<RestClient>> RestClient::Connect(Config config,
                                                                RestOptions options) {
  RM_ASSIGN_OR_RETURN(auto caller, Caller::Create(std::move(config), std::move(options)));
  return std::unique_ptr<RestClient>(new RestClient(std::move(caller)));
}

void RestClient::Stop() {
  caller_->Stop();
}

absl::StatusOr<Json> RestClient::GetPath(std::string_view path) {
  if (!path.starts_with('/')) return BadRequest("a path begins with /");
  RM_ASSIGN_OR_RETURN(std::string text,
                      caller_->CallText({.method = "GET", .path = std::string(path)}));
  Json answer = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (answer.is_discarded()) answer = std::move(text);
  return answer;
}

Reading RestClient::ReadingOf(const ResourceType& type) const {
  const RestOptions& options = caller_->options();
  Reading reading{.managed_fields = options.managed_fields, .spec = {}};
  if (type == kPod) reading.spec = options.pod_spec;
  return reading;
}

absl::StatusOr<Json> RestClient::Get(const ResourceType& type, const ObjectKey& key) {
  RM_ASSIGN_OR_RETURN(std::string path, ObjectPath(type, key));
  return caller_->Call({.method = "GET", .path = std::move(path)}, /*repeatable=*/true,
                       ReadingOf(type));
}

absl::StatusOr<ObjectList> RestClient::List(const ResourceType& type, std::string_view ns,
                                            const ListOptions& options) {
  if (options.limit < 0) return BadRequest("a list's limit is negative");
  const bool whole = options.limit == 0 && options.continue_token.empty();
  return whole ? ListAll(type, ns, options) : ListPage(type, ns, options);
}

absl::StatusOr<ObjectList> RestClient::ListPage(const ResourceType& type, std::string_view ns,
                                                const ListOptions& options) {
  const std::string path = CollectionPath(type, ns);
  const Query query = Query()
                          .Add("labelSelector", options.label_selector)
                          .Add("limit", options.limit == 0 ? "" : std::to_string(options.limit))
                          .Add("continue", options.continue_token);
  RM_ASSIGN_OR_RETURN(Json answer, caller_->Call({.method = "GET", .path = path + query.text()},
                                                 /*repeatable=*/true, ReadingOf(type)));
  return ParseList(type, path, std::move(answer));
}

absl::StatusOr<ObjectList> RestClient::ListAll(const ResourceType& type, std::string_view ns,
                                               const ListOptions& options) {
  ListOptions page = options;
  page.limit = caller_->options().page_size;
  ObjectList all;
  do {
    auto next = ListPage(type, ns, page);
    if (IsExpired(next.status()) && !page.continue_token.empty()) {
      // The moment was forgotten between two pages: once more, in one piece.
      page = options;
      all.items.clear();
      continue;
    }
    if (!next.ok()) return next.status();
    all.items.insert(all.items.end(), std::make_move_iterator(next->items.begin()),
                     std::make_move_iterator(next->items.end()));
    all.resource_version = next->resource_version;
    page.continue_token = next->continue_token;
    if (page.continue_token.empty()) break;
  } while (true);
  // The server sorts by storage key, in which "/" ends the namespace.
  std::sort(all.items.begin(), all.items.end(), ComesBefore);
  return all;
}

absl::StatusOr<std::unique_ptr<WatchStream>> RestClient::Watch(const ResourceType& type,
                                                               std::string_view ns,
                                                               const WatchOptions& options) {
  if (options.resource_version.empty()) return BadRequest("a watch needs a resourceVersion");
  const auto timeout = caller_->options().watch_timeout;
  const Query query = Query()
                          .Add("watch", "true")
                          .Add("resourceVersion", options.resource_version)
                          .Add("labelSelector", options.label_selector)
                          .Add("allowWatchBookmarks", options.bookmarks ? "true" : "")
                          .Add("timeoutSeconds", std::to_string(timeout.count()));
  RM_ASSIGN_OR_RETURN(
      OpenStream stream,
      caller_->Open({.method = "GET", .path = CollectionPath(type, ns) + query.text()}));
  const SteadyTime cut = SteadyTime::clock::now() + timeout + kWatchGrace;
  return std::make_unique<RestWatch>(std::move(stream), "watch of " + type.Qualified(), cut,
                                     ReadingOf(type));
}

absl::StatusOr<Json> RestClient::Create(const ResourceType& type, const Json& object) {
  const ObjectKey key = KeyOf(object);
  if (type.namespaced && key.ns.empty()) return BadRequest("metadata.namespace is empty");
  // The server calls this an internal error of its own, which would be tried again.
  if (!ResourceVersion(object).empty()) {
    return BadRequest("resourceVersion should not be set on objects to be created");
  }
  RM_ASSIGN_OR_RETURN(HttpRequest request,
                      WithBody("POST", CollectionPath(type, key.ns), kJson, object));
  // Repeated, it finds the name taken; a name that the server makes up would be another each time.
  return caller_->Call(std::move(request), /*repeatable=*/!key.name.empty(), ReadingOf(type));
}

absl::StatusOr<Json> RestClient::Update(const ResourceType& type, const Json& object) {
  RM_ASSIGN_OR_RETURN(std::string path, ObjectPath(type, KeyOf(object)));
  RM_ASSIGN_OR_RETURN(HttpRequest request, WithBody("PUT", std::move(path), kJson, object));
  return caller_->Call(std::move(request), /*repeatable=*/true, ReadingOf(type));
}

absl::StatusOr<Json> RestClient::Patch(const ResourceType& type, const ObjectKey& key,
                                       const Json& patch) {
  RM_ASSIGN_OR_RETURN(std::string path, ObjectPath(type, key));
  RM_ASSIGN_OR_RETURN(HttpRequest request, WithBody("PATCH", std::move(path), kMergePatch, patch));
  return caller_->Call(std::move(request), /*repeatable=*/true, ReadingOf(type));
}

absl::StatusOr<Json> RestClient::PatchStatus(const ResourceType& type, const ObjectKey& key,
                                             const Json& status,
                                             std::string_view resource_version) {
  if (resource_version.empty()) return BadRequest("a status patch needs a resourceVersion");
  RM_ASSIGN_OR_RETURN(const std::string path, ObjectPath(type, key));
  const Json patch = {{"metadata", {{"resourceVersion", resource_version}}}, {"status", status}};
  RM_ASSIGN_OR_RETURN(HttpRequest request, WithBody("PATCH", path + "/status", kMergePatch, patch));
  return caller_->Call(std::move(request), /*repeatable=*/true, ReadingOf(type));
}

absl::StatusOr<Json> RestClient::Apply(const ResourceType& type, const Json& object,
                                       const ApplyOptions& options) {
  if (options.field_manager.empty()) return BadRequest("an apply needs a field manager");
  RM_ASSIGN_OR_RETURN(const std::string path, ObjectPath(type, KeyOf(object)));
  const Query query =
      Query().Add("fieldManager", options.field_manager).Add("force", options.force ? "true" : "");
  RM_ASSIGN_OR_RETURN(HttpRequest request,
                      WithBody("PATCH", path + query.text(), kApplyPatch, object));
  return caller_->Call(std::move(request), /*repeatable=*/true, ReadingOf(type));
}

absl::Status RestClient::Delete(const ResourceType& type, const ObjectKey& key,
                                const DeleteOptions& options) {
  RM_ASSIGN_OR_RETURN(std::string path, ObjectPath(type, key));
  RM_ASSIGN_OR_RETURN(HttpRequest request,
                      WithBody("DELETE", std::move(path), kJson, DeleteBody(options)));
  return caller_->Call(std::move(request), /*repeatable=*/true, ReadingOf(type)).status();
}

absl::Status RestClient::Scale(const ResourceType& type, const ObjectKey& key,
                               std::int64_t replicas) {
  RM_ASSIGN_OR_RETURN(const std::string path, ObjectPath(type, key));
  const Json patch = {{"spec", {{"replicas", replicas}}}};
  RM_ASSIGN_OR_RETURN(HttpRequest request, WithBody("PATCH", path + "/scale", kMergePatch, patch));
  return caller_->Call(std::move(request), /*repeatable=*/true, ReadingOf(type)).status();
}

}  // namespace ringmaster::kube::rest
