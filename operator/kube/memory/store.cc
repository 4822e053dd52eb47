#include "operator/kube/memory/store.h"

#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/check.h"
#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/memory/apply.h"
#include "operator/kube/memory/ids.h"
#include "operator/kube/memory/store_core.h"
#include "operator/kube/memory/write_rules.h"
#include "operator/kube/object.h"
#include "operator/kube/selector.h"

namespace ringmaster::kube::memory {
namespace {

// How often a taken generated name is replaced by another one, as the API server does.
constexpr int kNameAttempts = 8;

absl::StatusOr<Revision> ParseResourceVersion(const std::string& text) {
  Revision revision = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), revision);
  if (!text.empty() && error == std::errc() && end == text.data() + text.size()) return revision;
  return BadRequest(fmt::format("invalid resource version \"{}\"", text));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryStore>> MemoryStore::Open(StoreOptions options) {
  auto core = std::make_unique<StoreCore>(StoreCore::Options{.clock = options.clock,
                                                             .kinds = options.kinds,
                                                             .journal_path = options.journal_path,
                                                             .durability = options.durability,
                                                             .compact_after = options.compact_after,
                                                             .watch = options.watch});
  std::string torn;
  RM_RETURN_IF_ERROR(core->Load(&torn));
  std::unique_ptr<MemoryStore> store(new MemoryStore(std::move(options), std::move(core)));
  store->torn_ = std::move(torn);
  return store;
}

MemoryStore::MemoryStore(StoreOptions options, std::unique_ptr<StoreCore> core)
    : options_(std::move(options)),
      seed_(options_.seed != 0 ? options_.seed : RandomSeed()),
      core_(std::move(core)) {}

MemoryStore::~MemoryStore() = default;

absl::StatusOr<Kind*> MemoryStore::Serve(const ResourceType& type) {
  if (Kind* kind = core_->KindOf(type)) return kind;
  return absl::NotFoundError(
      fmt::format("the server could not find the requested resource {}", type.Qualified()));
}

absl::StatusOr<ObjectPtr> MemoryStore::Find(const Kind* kind, const ObjectKey& key) {
  if (ObjectPtr found = core_->table().Find({kind, key})) return found;
  return NotFound(kind->type, key);
}

absl::StatusOr<Json> MemoryStore::Get(const ResourceType& type, const ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  RM_ASSIGN_OR_RETURN(const Kind* kind, Serve(type));
  RM_ASSIGN_OR_RETURN(const ObjectPtr found, Find(kind, key));
  return Json(*found);
}

absl::StatusOr<ObjectList> MemoryStore::List(const ResourceType& type, std::string_view ns,
                                             const ListOptions& options) {
  RM_ASSIGN_OR_RETURN(const LabelSelector selector, LabelSelector::Parse(options.label_selector));
  const std::lock_guard lock(mutex_);
  RM_ASSIGN_OR_RETURN(const Kind* kind, Serve(type));
  if (!options.continue_token.empty())
    return pages_.Continue(options.continue_token, options.limit);
  std::vector<ObjectPtr> items = core_->table().List(kind, ns);
  std::erase_if(items, [&](const ObjectPtr& item) { return !selector.Matches(*item); });
  return pages_.First(std::move(items), std::to_string(core_->revision()), options.limit);
}

absl::StatusOr<std::unique_ptr<WatchStream>> MemoryStore::Watch(const ResourceType& type,
                                                                std::string_view ns,
                                                                const WatchOptions& options) {
  RM_ASSIGN_OR_RETURN(LabelSelector selector, LabelSelector::Parse(options.label_selector));
  RM_ASSIGN_OR_RETURN(const Revision from, ParseResourceVersion(options.resource_version));
  const std::lock_guard lock(mutex_);
  RM_ASSIGN_OR_RETURN(const Kind* kind, Serve(type));
  return core_->hub().Open({.kind = kind->type.Qualified(),
                            .ns = std::string(ns),
                            .selector = std::move(selector),
                            .bookmarks = options.bookmarks,
                            .type = kind->type},
                           from);
}

absl::StatusOr<Json> MemoryStore::Create(const ResourceType& type, const Json& object) {
  const std::lock_guard lock(mutex_);
  RM_ASSIGN_OR_RETURN(Kind * kind, Serve(type));
  return CreateLocked(kind, object);
}

absl::StatusOr<Json> MemoryStore::CreateLocked(Kind* kind, const Json& object) {
  const Revision revision = core_->revision() + 1;
  const bool generated = Name(object).empty();
  for (int attempt = 0;; ++attempt) {
    const Birth birth{core_->Now(), MakeUid(seed_, revision),
                      MakeNameSuffix(seed_, revision, attempt)};
    RM_ASSIGN_OR_RETURN(Json prepared, PrepareCreate(*kind, object, birth));
    const ObjectKey key = KeyOf(prepared);
    if (core_->table().Find({kind, key}) == nullptr) {
      return Store(kind, Operation::kCreate, std::move(prepared), nullptr);
    }
    if (!generated || attempt + 1 == kNameAttempts) return AlreadyExists(kind->type, key);
  }
}

absl::StatusOr<Json> MemoryStore::Update(const ResourceType& type, const Json& object) {
  const std::lock_guard lock(mutex_);
  RM_ASSIGN_OR_RETURN(Kind * kind, Serve(type));
  RM_ASSIGN_OR_RETURN(const ObjectPtr current, Find(kind, KeyOf(object)));
  RM_ASSIGN_OR_RETURN(Json next, PrepareUpdate(*kind, *current, object));
  return Store(kind, Operation::kUpdate, std::move(next), current.get());
}

absl::StatusOr<Json> MemoryStore::Patch(const ResourceType& type, const ObjectKey& key,
                                        const Json& patch) {
  const std::lock_guard lock(mutex_);
  RM_ASSIGN_OR_RETURN(Kind * kind, Serve(type));
  RM_ASSIGN_OR_RETURN(const ObjectPtr current, Find(kind, key));
  if (!patch.is_object()) return BadRequest("a merge patch must be an object");
  Json merged = *current;
  MergePatch(merged, patch);
  if (KeyOf(merged) != key)
    return BadRequest("a patch cannot change the object's name or namespace");
  RM_ASSIGN_OR_RETURN(Json next, PrepareUpdate(*kind, *current, std::move(merged)));
  return Store(kind, Operation::kUpdate, std::move(next), current.get());
}

absl::StatusOr<Json> MemoryStore::PatchStatus(const ResourceType& type, const ObjectKey& key,
                                              const Json& status,
                                              std::string_view resource_version) {
  const std::lock_guard lock(mutex_);
  RM_ASSIGN_OR_RETURN(Kind * kind, Serve(type));
  RM_ASSIGN_OR_RETURN(const ObjectPtr current, Find(kind, key));
  RM_ASSIGN_OR_RETURN(Json next, PrepareStatus(*kind, *current, status, resource_version));
  return Store(kind, Operation::kUpdateStatus, std::move(next), current.get());
}

absl::StatusOr<Json> MemoryStore::Apply(const ResourceType& type, const Json& object,
                                        const ApplyOptions& options) {
  const std::lock_guard lock(mutex_);
  RM_ASSIGN_OR_RETURN(Kind * kind, Serve(type));
  Json body = object;
  RM_RETURN_IF_ERROR(CheckBody(*kind, body));
  const ObjectPtr current = core_->table().Find({kind, KeyOf(body)});
  RM_ASSIGN_OR_RETURN(Json merged, MergeApply(*kind, current.get(), body, options, core_->Now()));
  if (current == nullptr) return CreateLocked(kind, merged);
  RM_ASSIGN_OR_RETURN(Json next, PrepareUpdate(*kind, *current, std::move(merged)));
  return Store(kind, Operation::kUpdate, std::move(next), current.get());
}

absl::Status MemoryStore::Delete(const ResourceType& type, const ObjectKey& key,
                                 const DeleteOptions& options) {
  const std::lock_guard lock(mutex_);
  RM_ASSIGN_OR_RETURN(const Kind* kind, Serve(type));
  return core_->Delete({kind, key}, options);
}

absl::StatusOr<Json> MemoryStore::Store(Kind* kind, Operation operation, Json object,
                                        const Json* current) {
  if (kind->admission) {
    AdmissionRequest request{operation, object, current};
    if (absl::Status status = kind->admission(request); !status.ok()) {
      if (status.code() != absl::StatusCode::kInvalidArgument) return status;
      return Invalid(kind->type, Name(object), Message(status));
    }
  }
  if (operation == Operation::kUpdate) CountGeneration(*kind, *current, object);
  const ObjectKey key = KeyOf(object);
  RM_ASSIGN_OR_RETURN(const ObjectPtr stored, core_->Put({kind, key}, std::move(object)));
  return Json(*stored);
}

absl::StatusOr<std::string> MemoryStore::IssuePodToken(const ObjectKey& pod,
                                                       std::string_view audience,
                                                       Duration lifetime) {
  const std::lock_guard lock(mutex_);
  RM_ASSIGN_OR_RETURN(const Kind* kind, Serve(kPod));
  RM_ASSIGN_OR_RETURN(const ObjectPtr found, Find(kind, pod));
  const Time now = core_->Now();
  return tokens_.Issue({pod, Uid(*found)}, audience, now + lifetime, now);
}

absl::StatusOr<PodIdentity> MemoryStore::ReviewToken(std::string_view token,
                                                     std::string_view audience) {
  const std::lock_guard lock(mutex_);
  RM_ASSIGN_OR_RETURN(const Kind* kind, Serve(kPod));
  const auto pod = tokens_.Find(token, audience, core_->Now());
  if (!pod)
    return absl::UnauthenticatedError("the token is unknown, expired or for another audience");
  const ObjectPtr found = core_->table().Find({kind, pod->pod});
  if (found == nullptr || Uid(*found) != pod->uid) {
    return absl::UnauthenticatedError(
        fmt::format("pod {} that the token was issued to is gone", pod->pod.ToString()));
  }
  return *pod;
}

void MemoryStore::SetAdmission(const ResourceType& type, Admission admission) {
  const std::lock_guard lock(mutex_);
  Kind* kind = core_->KindOf(type);
  RM_CHECK(kind != nullptr, "SetAdmission is for a kind that the store serves");
  kind->admission = std::move(admission);
}

absl::Status MemoryStore::Compact() {
  const std::lock_guard lock(mutex_);
  return core_->Compact();
}

void MemoryStore::ExpireHistory() {
  const std::lock_guard lock(mutex_);
  core_->hub().Forget();
  pages_.Forget();
}

}  // namespace ringmaster::kube::memory
