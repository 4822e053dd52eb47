#include "operator/kube/testing/fault_client.h"

#include <atomic>

#include <nlohmann/json.hpp>

#include "operator/kube/object.h"

namespace ringmaster::kube::testing {
namespace {

absl::Status StatusOf(const absl::Status& status) {
  return status;
}
template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

bool Matches(const CallFilter& filter, const Call& call) {
  return (!filter.verb || *filter.verb == call.verb) &&
         (filter.type.empty() || filter.type == call.type) &&
         (filter.name.empty() || filter.name == call.key.name);
}

}  // namespace

// A stream and whether it was cut; shared with the client, which may cut it while its reader waits.
struct FaultClient::Cut {
  std::unique_ptr<WatchStream> stream;
  std::atomic<bool> cut = false;
};

class FaultClient::CuttableStream final : public WatchStream {
 public:
  explicit CuttableStream(std::shared_ptr<Cut> cut) : cut_(std::move(cut)) {}

  absl::StatusOr<WatchEvent> Next(std::chrono::milliseconds timeout) override {
    auto event = cut_->stream->Next(timeout);
    if (event.ok() || !cut_->cut) return event;
    return absl::UnavailableError("the watch was cut");
  }
  void Stop() override { cut_->stream->Stop(); }

 private:
  const std::shared_ptr<Cut> cut_;
};

std::string_view ToString(Verb verb) {
  switch (verb) {
    case Verb::kGet:
      return "get";
    case Verb::kList:
      return "list";
    case Verb::kWatch:
      return "watch";
    case Verb::kCreate:
      return "create";
    case Verb::kUpdate:
      return "update";
    case Verb::kPatch:
      return "patch";
    case Verb::kPatchStatus:
      return "patch status";
    case Verb::kApply:
      return "apply";
    case Verb::kDelete:
      break;
  }
  return "delete";
}

bool IsWrite(Verb verb) {
  return verb != Verb::kGet && verb != Verb::kList && verb != Verb::kWatch;
}

void FaultClient::FailNext(CallFilter filter, absl::Status status, int skip, int times,
                           Moment moment) {
  const std::lock_guard lock(mutex_);
  faults_.push_back({std::move(filter), std::move(status), skip, times, moment});
}

int FaultClient::Pending() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(faults_.size());
}

void FaultClient::ClearFaults() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
}

void FaultClient::CutWatches() {
  const std::lock_guard lock(mutex_);
  for (const auto& watch : watches_) {
    if (const auto open = watch.lock()) {
      open->cut = true;
      open->stream->Stop();
    }
  }
  watches_.clear();
}

void FaultClient::SetObserver(std::function<void(const Call&)> observer) {
  const std::lock_guard lock(mutex_);
  observer_ = std::move(observer);
}

std::optional<FaultClient::Fault> FaultClient::TakeFault(const Call& call) {
  const std::lock_guard lock(mutex_);
  for (auto it = faults_.begin(); it != faults_.end(); ++it) {
    if (!Matches(it->filter, call)) continue;
    if (it->skip > 0) {
      --it->skip;
      return std::nullopt;
    }
    const Fault fault = *it;
    if (--it->times == 0) faults_.erase(it);
    return fault;
  }
  return std::nullopt;
}

template <typename R>
R FaultClient::Through(Verb verb, const ResourceType& type, ObjectKey key,
                       const std::function<R()>& forward) {
  Call call{verb, type.Qualified(), std::move(key), absl::OkStatus(), false};
  const std::optional<Fault> fault = TakeFault(call);
  R result = fault && fault->moment == Moment::kBefore ? R(fault->status) : forward();
  if (fault && fault->moment == Moment::kAfter) result = fault->status;
  call.status = StatusOf(result);
  call.injected = fault.has_value();
  std::function<void(const Call&)> observer;
  {
    const std::lock_guard lock(mutex_);
    observer = observer_;
  }
  if (observer) observer(call);
  return result;
}

absl::StatusOr<Json> FaultClient::Get(const ResourceType& type, const ObjectKey& key) {
  return Through<absl::StatusOr<Json>>(Verb::kGet, type, key,
                                       [&] { return wrapped_.Get(type, key); });
}

absl::StatusOr<ObjectList> FaultClient::List(const ResourceType& type, std::string_view ns,
                                             const ListOptions& options) {
  return Through<absl::StatusOr<ObjectList>>(Verb::kList, type, {std::string(ns), ""},
                                             [&] { return wrapped_.List(type, ns, options); });
}

absl::StatusOr<std::unique_ptr<WatchStream>> FaultClient::Watch(const ResourceType& type,
                                                                std::string_view ns,
                                                                const WatchOptions& options) {
  auto stream = Through<absl::StatusOr<std::unique_ptr<WatchStream>>>(
      Verb::kWatch, type, {std::string(ns), ""}, [&] { return wrapped_.Watch(type, ns, options); });
  if (!stream.ok()) return stream.status();
  const auto cut = std::make_shared<Cut>();
  cut->stream = *std::move(stream);
  const std::lock_guard lock(mutex_);
  std::erase_if(watches_, [](const auto& watch) { return watch.expired(); });
  watches_.push_back(cut);
  return std::unique_ptr<WatchStream>(std::make_unique<CuttableStream>(cut));
}

absl::StatusOr<Json> FaultClient::Create(const ResourceType& type, const Json& object) {
  return Through<absl::StatusOr<Json>>(Verb::kCreate, type, KeyOf(object),
                                       [&] { return wrapped_.Create(type, object); });
}

absl::StatusOr<Json> FaultClient::Update(const ResourceType& type, const Json& object) {
  return Through<absl::StatusOr<Json>>(Verb::kUpdate, type, KeyOf(object),
                                       [&] { return wrapped_.Update(type, object); });
}

absl::StatusOr<Json> FaultClient::Patch(const ResourceType& type, const ObjectKey& key,
                                        const Json& patch) {
  return Through<absl::StatusOr<Json>>(Verb::kPatch, type, key,
                                       [&] { return wrapped_.Patch(type, key, patch); });
}

absl::StatusOr<Json> FaultClient::PatchStatus(const ResourceType& type, const ObjectKey& key,
                                              const Json& status,
                                              std::string_view resource_version) {
  return Through<absl::StatusOr<Json>>(Verb::kPatchStatus, type, key, [&] {
    return wrapped_.PatchStatus(type, key, status, resource_version);
  });
}

absl::StatusOr<Json> FaultClient::Apply(const ResourceType& type, const Json& object,
                                        const ApplyOptions& options) {
  return Through<absl::StatusOr<Json>>(Verb::kApply, type, KeyOf(object),
                                       [&] { return wrapped_.Apply(type, object, options); });
}

absl::Status FaultClient::Delete(const ResourceType& type, const ObjectKey& key,
                                 const DeleteOptions& options) {
  return Through<absl::Status>(Verb::kDelete, type, key,
                               [&] { return wrapped_.Delete(type, key, options); });
}

}  // namespace ringmaster::kube::testing
