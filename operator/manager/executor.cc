#include "operator/manager/executor.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/log.h"
#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/object.h"
#include "operator/manager/parallel.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::manager {
namespace {

using kube::Json;

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

// Of errors with kInvalidArgument: whether the object itself is wrong, not how it was asked for.
bool IsRefusedAsItIs(const absl::Status& status) {
  const std::string reason = kube::Reason(status);
  return reason == kube::kReasonInvalid || reason == kube::kReasonBadRequest;
}

bool IsWrite(const reconcile::Action& action) {
  return !std::holds_alternative<reconcile::RecordEvent>(action) &&
         !std::holds_alternative<reconcile::SendCommand>(action);
}

Json StatusOf(const Json& job) {
  const Json* status = kube::Find(job, {"status"});
  return status == nullptr ? Json::object() : *status;
}

}  // namespace

Executor::Executor(kube::Client& client, WorkerLink& link, controller::EventSink& events,
                   OwnWrites& own_writes, MadePods& made_pods, Rush& rush, int parallel)
    : client_(client),
      link_(link),
      events_(events),
      own_writes_(own_writes),
      made_pods_(made_pods),
      rush_(rush),
      parallel_(parallel) {}

absl::Status Executor::Execute(const Json& job, const reconcile::Decision& decision,
                               CallMeter& meter) {
  std::optional<Rush::Creation> creation;
  if (reconcile::CreatesPods(decision)) creation.emplace(rush_);
  if (absl::Status stored = StoreStatus(job, decision, meter); !stored.ok()) {
    if (creation) creation->Cancel();
    return stored;
  }
  TellWorkers(kube::KeyOf(job), decision);
  const absl::Status written = Write(job, decision, meter);
  TellEvents(job, decision, written.ok());
  return written;
}

absl::Status Executor::StoreStatus(const Json& job, const reconcile::Decision& decision,
                                   CallMeter& meter) {
  if (!decision.status) return absl::OkStatus();
  const Json patch = kube::MergeDiff(StatusOf(job), ToJson(*decision.status));
  if (patch.empty()) return absl::OkStatus();
  const kube::ObjectKey key = kube::KeyOf(job);
  const std::string version = kube::ResourceVersion(job);
  absl::StatusOr<Json> stored =
      meter.Time([&] { return client_.PatchStatus(kube::kTrainingJob, key, patch, version); });
  if (absl::IsInvalidArgument(stored.status()) || absl::IsPermissionDenied(stored.status()))
    return StatusRefused(job, stored.status());
  RM_RETURN_IF_ERROR(stored.status());
  own_writes_.Record(key, version, std::make_shared<const Json>(*std::move(stored)));
  return absl::OkStatus();
}

// What the operator has made of the job is refused, not what the job asks for. The status cannot
// say so: an event does.
absl::Status Executor::StatusRefused(const Json& job, const absl::Status& why) {
  const std::string words = Message(why);
  events_.Tell(
      kube::kTrainingJob, job,
      {.type = controller::EventType::kWarning,
       .reason = reconcile::kReasonStatusRefused,
       .message = fmt::format(
           "The API server refuses the job's status: {}. Nothing more is done for the job until it "
           "is taken; it is tried again. See whether a policy of the cluster or the operator's "
           "role forbids it, and whether the definition of TrainingJob is of the operator's "
           "version.",
           words)});
  return kube::WithReason(
      absl::InternalError(fmt::format("the job's status is refused: {}", words)),
      reconcile::kReasonStatusRefused);
}

void Executor::TellWorkers(const kube::ObjectKey& key, const reconcile::Decision& decision) {
  if (decision.announce) link_.Announce(key, *decision.announce);
  for (const reconcile::Action& action : decision.actions) {
    if (const auto* send = std::get_if<reconcile::SendCommand>(&action)) {
      link_.Send(key, send->pod_uid, send->command);
    }
  }
  for (const std::string& pod_uid : decision.let_go) link_.LetGo(key, pod_uid);
}

absl::Status Executor::Write(const Json& job, const reconcile::Decision& decision,
                             CallMeter& meter) {
  std::vector<const reconcile::Action*> writes;
  for (const reconcile::Action& action : decision.actions) {
    if (IsWrite(action)) writes.push_back(&action);
  }
  if (writes.empty()) return absl::OkStatus();
  return meter.Time([&] {
    return ForEachParallel(writes.size(), parallel_,
                           [&](std::size_t i) { return WriteOne(job, *writes[i]); });
  });
}

// Of what the API refuses, only an object that was to be made can be the fault of the job.
absl::Status Executor::WriteOne(const Json& job, const reconcile::Action& action) {
  const absl::Status done = WriteAction(job, action);
  const bool makes = std::holds_alternative<reconcile::CreatePod>(action) ||
                     std::holds_alternative<reconcile::CreateService>(action);
  if (!absl::IsInvalidArgument(done) || (makes && IsRefusedAsItIs(done))) return done;
  return kube::WithReason(absl::InternalError(Message(done)), kube::Reason(done));
}

absl::Status Executor::WriteAction(const Json& job, const reconcile::Action& action) {
  const std::string ns = kube::Namespace(job);
  return std::visit(
      Overloaded{
          [&](const reconcile::CreatePod& create) { return CreatePod(job, create.pod); },
          [&](const reconcile::CreateService& create) {
            return CreateOwned(job, kube::kService, create.service).status();
          },
          [&](const reconcile::DeletePod& pod) {
            return DeleteThis(kube::kPod, {ns, pod.name}, pod.uid);
          },
          [&](const reconcile::DeleteService& service) {
            return DeleteThis(kube::kService, {ns, service.name}, service.uid);
          },
          [&](const reconcile::CreatePodGroup& create) {
            return GroupRefused(CreateOwned(job, create.type, create.group).status());
          },
          [&](const reconcile::ResizePodGroup& resize) {
            const absl::Status done =
                client_.Patch(resize.type, {ns, resize.name}, resize.patch).status();
            return kube::IsNotFound(done) ? absl::OkStatus() : GroupRefused(done);
          },
          [&](const reconcile::DeletePodGroup& group) {
            return DeleteThis(group.type, {ns, group.name}, group.uid);
          },
          [&](const reconcile::DeleteJob& gone) {
            return DeleteThis(kube::kTrainingJob, kube::KeyOf(job), gone.uid);
          },
          [](const reconcile::RecordEvent&) { return absl::OkStatus(); },
          [](const reconcile::SendCommand&) { return absl::OkStatus(); },
      },
      action);
}

absl::Status Executor::CreatePod(const Json& job, const Json& pod) {
  RM_ASSIGN_OR_RETURN(Json created, CreateOwned(job, kube::kPod, pod));
  made_pods_.Record(std::make_shared<const Json>(std::move(created)));
  return absl::OkStatus();
}

absl::StatusOr<Json> Executor::CreateOwned(const Json& job, const kube::ResourceType& type,
                                           const Json& object) {
  absl::StatusOr<Json> created = client_.Create(type, object);
  // Admission may think otherwise in a while; an object that is invalid stays so.
  if (absl::IsInvalidArgument(created.status()) && kube::IsDeniedByAdmission(created.status()))
    return absl::PermissionDeniedError(Message(created.status()));
  if (!kube::IsAlreadyExists(created.status())) return created;
  absl::StatusOr<Json> existing = client_.Get(type, kube::KeyOf(object));
  if (!existing.ok()) return existing;
  if (kube::IsOwnedBy(*existing, kube::Uid(job)) && !kube::IsDeleting(*existing)) return existing;
  const std::string which = fmt::format("{} {}", type.kind, kube::KeyOf(object).ToString());
  if (kube::IsDeleting(*existing)) {
    return absl::UnavailableError(fmt::format("{} is being deleted; it is made anew then", which));
  }
  return absl::AlreadyExistsError(
      fmt::format("{} exists already and belongs to something else; it must go before this job can "
                  "have its own",
                  which));
}

// A group that is refused (a queue that does not exist, say) is no fault of the pod template, and
// may be taken later.
absl::Status Executor::GroupRefused(const absl::Status& written) {
  if (!absl::IsInvalidArgument(written) && !absl::IsPermissionDenied(written)) return written;
  return absl::FailedPreconditionError(Message(written));
}

absl::Status Executor::DeleteThis(const kube::ResourceType& type, const kube::ObjectKey& key,
                                  const std::string& uid) {
  const absl::Status deleted = client_.Delete(type, key, {.uid = uid});
  if (kube::IsNotFound(deleted)) return absl::OkStatus();
  if (!kube::IsConflict(deleted)) return deleted;
  // Replaced by another of the same name, as a rule, and so no more. Where it is still there, for a
  // webhook may say the same, no change of it will bring the pass that tries again.
  const absl::StatusOr<Json> found = client_.Get(type, key);
  if (kube::IsNotFound(found.status())) return absl::OkStatus();
  RM_RETURN_IF_ERROR(found.status());
  return kube::Uid(*found) == uid ? deleted : absl::OkStatus();
}

void Executor::TellEvents(const Json& job, const reconcile::Decision& decision, bool written) {
  for (const reconcile::Action& action : decision.actions) {
    const auto* event = std::get_if<reconcile::RecordEvent>(&action);
    if (event == nullptr || (event->tells_of_writes && !written)) continue;
    const auto type =
        event->warning ? controller::EventType::kWarning : controller::EventType::kNormal;
    events_.Tell(kube::kTrainingJob, job,
                 {.type = type, .reason = event->reason, .message = event->message});
  }
}

}  // namespace ringmaster::manager
