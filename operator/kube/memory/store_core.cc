#include "operator/kube/memory/store_core.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/log.h"
#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/memory/garbage_collection.h"
#include "operator/kube/memory/write_rules.h"
#include "operator/kube/object.h"

namespace ringmaster::kube::memory {
namespace {

constexpr int kJournalFormat = 1;
// A scan of all events takes a while; one a minute is none too many.
constexpr Duration kExpiryInterval = std::chrono::minutes(1);

absl::StatusOr<Revision> ParseRevision(const std::string& text) {
  Revision revision = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), revision);
  if (error != std::errc() || end != text.data() + text.size()) {
    return absl::DataLossError(fmt::format("\"{}\" is no resourceVersion", text));
  }
  return revision;
}

Json BaseRecord(Revision revision) {
  return {{"op", "base"}, {"format", kJournalFormat}, {"revision", std::to_string(revision)}};
}

Json PutRecord(const Kind& kind, const Json& object) {
  return {{"op", "put"}, {"type", kind.type.Qualified()}, {"object", object}};
}

Json RemoveRecord(const Place& place, Revision revision) {
  return {{"op", "remove"},
          {"type", place.kind->type.Qualified()},
          {"namespace", place.key.ns},
          {"name", place.key.name},
          {"revision", std::to_string(revision)}};
}

}  // namespace

StoreCore::StoreCore(Options options)
    : options_(std::move(options)),
      kinds_(options_.kinds),
      hub_(std::make_shared<WatchHub>(options_.watch, 0)) {}

StoreCore::~StoreCore() {
  hub_->Close();
}

Kind* StoreCore::KindOf(const ResourceType& type) {
  const auto it = std::find_if(kinds_.begin(), kinds_.end(),
                               [&](const Kind& kind) { return kind.type == type; });
  return it == kinds_.end() ? nullptr : &*it;
}

absl::Status StoreCore::Load(std::string* torn) {
  if (options_.journal_path.empty()) return absl::OkStatus();
  RM_ASSIGN_OR_RETURN(journal_, Journal::Open(
                                    options_.journal_path, options_.durability,
                                    [this](const Json& write) { return Replay(write); }, torn));
  if (journal_->lines() == 0) RM_RETURN_IF_ERROR(journal_->Append(BaseRecord(0)));
  hub_ = std::make_shared<WatchHub>(options_.watch, revision_);
  table_.ForEach(
      [this](const Place& place, const ObjectPtr& object) { NoteChange(place, nullptr, object); });
  CollectGarbage();
  return absl::OkStatus();
}

absl::Status StoreCore::Replay(const Json& write) {
  const std::string op = FindString(write, {"op"});
  if (op == "base") {
    const auto format = FindInt(write, {"format"});
    if (format != kJournalFormat)
      return absl::UnimplementedError("the journal is of another version's format");
    RM_ASSIGN_OR_RETURN(revision_, ParseRevision(FindString(write, {"revision"})));
    return absl::OkStatus();
  }
  const std::string type = FindString(write, {"type"});
  const auto kind = std::find_if(kinds_.begin(), kinds_.end(),
                                 [&](const Kind& k) { return k.type.Qualified() == type; });
  if (kind == kinds_.end()) return absl::DataLossError(fmt::format("unknown type \"{}\"", type));
  if (op == "put" && write.contains("object")) {
    const Json& object = write["object"];
    RM_ASSIGN_OR_RETURN(revision_, ParseRevision(ResourceVersion(object)));
    table_.Put({&*kind, KeyOf(object)}, std::make_shared<const Json>(object));
    return absl::OkStatus();
  }
  if (op != "remove") return absl::DataLossError(fmt::format("unknown operation \"{}\"", op));
  RM_ASSIGN_OR_RETURN(revision_, ParseRevision(FindString(write, {"revision"})));
  table_.Erase({&*kind, {FindString(write, {"namespace"}), FindString(write, {"name"})}});
  return absl::OkStatus();
}

absl::Status StoreCore::WriteJournal(const Json& write) {
  return journal_ == nullptr ? absl::OkStatus()
                             : Annotate(journal_->Append(write), "the store's journal");
}

absl::Status StoreCore::Compact() {
  if (journal_ == nullptr) return absl::OkStatus();
  // Replaying takes each record's revision in turn, and objects are not in that order: the last
  // record says where the store is.
  std::vector<Json> writes = {BaseRecord(revision_)};
  table_.ForEach([&](const Place& place, const ObjectPtr& object) {
    writes.push_back(PutRecord(*place.kind, *object));
  });
  writes.push_back(BaseRecord(revision_));
  return journal_->Rewrite(writes);
}

void StoreCore::CompactIfMostlyPast() {
  if (journal_ == nullptr) return;
  const auto live = static_cast<std::int64_t>(table_.size());
  if (journal_->lines() < std::max(options_.compact_after, 4 * live)) return;
  if (absl::Status status = Compact(); !status.ok())
    log::Warning("the store's journal was not compacted", {{"error", status}});
}

absl::StatusOr<ObjectPtr> StoreCore::Put(const Place& place, Json object) {
  const ObjectPtr before = table_.Find(place);
  if (IsReleased(object)) {
    const auto last = std::make_shared<Json>(object);
    RM_RETURN_IF_ERROR(Remove(place, std::move(object)));
    CollectGarbage();
    return ObjectPtr(last);
  }
  if (before != nullptr && *before == object) return before;
  RM_ASSIGN_OR_RETURN(ObjectPtr stored, Write(place, std::move(object)));
  CollectGarbage();
  RemoveExpired(place.kind);
  return stored;
}

// What cannot be journaled stays until the next look.
void StoreCore::RemoveExpired(const Kind* kind) {
  const Time now = Now();
  if (!kind->lifetime || now < expired_until_ + kExpiryInterval) return;
  expired_until_ = now;
  for (const ObjectPtr& object : table_.List(kind, "")) {
    const Time last = FindTime(*object, {"lastTimestamp"}).value_or(now);
    if (last + *kind->lifetime > now) continue;
    if (!Remove({kind, KeyOf(*object)}, Json(*object)).ok()) return;
  }
}

absl::Status StoreCore::Delete(const Place& place, const DeleteOptions& options) {
  RM_RETURN_IF_ERROR(DeleteOne(place, options));
  CollectGarbage();
  return absl::OkStatus();
}

absl::StatusOr<ObjectPtr> StoreCore::Write(const Place& place, Json object) {
  object["metadata"]["resourceVersion"] = std::to_string(revision_ + 1);
  const auto stored = std::make_shared<const Json>(std::move(object));
  const ObjectPtr before = table_.Find(place);
  RM_RETURN_IF_ERROR(WriteJournal(PutRecord(*place.kind, *stored)));
  ++revision_;
  table_.Put(place, stored);
  hub_->Publish(place.kind->type.Qualified(), {revision_, stored, before, false});
  NoteChange(place, before, stored);
  CompactIfMostlyPast();
  return ObjectPtr(stored);
}

absl::Status StoreCore::Remove(const Place& place, Json last_state) {
  const ObjectPtr before = table_.Find(place);
  last_state["metadata"]["resourceVersion"] = std::to_string(revision_ + 1);
  RM_RETURN_IF_ERROR(WriteJournal(RemoveRecord(place, revision_ + 1)));
  ++revision_;
  table_.Erase(place);
  hub_->Publish(place.kind->type.Qualified(),
                {revision_, std::make_shared<const Json>(std::move(last_state)), before, true});
  NoteChange(place, before, nullptr);
  CompactIfMostlyPast();
  return absl::OkStatus();
}

absl::Status StoreCore::DeleteOne(const Place& place, const DeleteOptions& options) {
  const ObjectPtr current = table_.Find(place);
  if (current == nullptr) return NotFound(place.kind->type, place.key);
  RM_RETURN_IF_ERROR(
      CheckPreconditions(*place.kind, *current, options.uid, options.resource_version));
  Json doomed = *current;
  if (options.propagation == Propagation::kOrphan) RM_RETURN_IF_ERROR(Orphan(Uid(*current)));
  if (options.propagation == Propagation::kForeground &&
      !HasFinalizer(doomed, kForegroundFinalizer)) {
    Json& finalizers = doomed["metadata"]["finalizers"];
    if (!finalizers.is_array()) finalizers = Json::array();
    finalizers.push_back(kForegroundFinalizer);
  }
  Json remains = PlanDeletion(*place.kind, doomed, options, Now());
  if (remains.is_null()) return Remove(place, std::move(doomed));
  if (remains == *current) return absl::OkStatus();
  return Write(place, std::move(remains)).status();
}

}  // namespace ringmaster::kube::memory
