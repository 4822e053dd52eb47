#include "operator/reconcile/testing.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/check.h"
#include "common/contract.h"
#include "operator/kube/object.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::reconcile::testing {
namespace {

using kube::Json;

constexpr char kJob[] = "digits";

Time Start() {
  return FakeClock().Now();
}

std::string PodUid(const std::string& name) {
  return "uid-of-" + name;
}

Json MakePod(const std::string& name, int index, int incarnation) {
  Json pod = kube::NewObject(kube::kPod, {"default", name});
  pod["metadata"]["uid"] = PodUid(name);
  kube::SetLabel(pod, contract::kLabelIndex, std::to_string(index));
  kube::SetLabel(pod, contract::kLabelIncarnation, std::to_string(incarnation));
  pod["status"]["phase"] = "Running";
  return pod;
}

v1::TrainerConfig MakeTrainer() {
  v1::TrainerConfig trainer;
  trainer.model.zoo = v1::Zoo{.name = "lenet-bn"};
  trainer.data.csv = v1::CsvData{.path = "digits.csv", .classes = 10, .shape = {1, 8, 8}};
  trainer.optimizer.sgd = v1::Sgd{.learning_rate = 0.1};
  trainer.batch = {.size = 64, .shards = 8};
  trainer.epochs = 20;
  return trainer;
}

std::size_t PlaceOf(const Observed& observed, int index) {
  const auto pod = std::ranges::find_if(observed.pods, [&](const auto& candidate) {
    return kube::Label(*candidate, contract::kLabelIndex) == std::to_string(index);
  });
  RM_CHECK(pod != observed.pods.end(), "the test has no pod of this index");
  return static_cast<std::size_t>(pod - observed.pods.begin());
}

}  // namespace

Observed Created(int workers) {
  Observed observed;
  observed.job.metadata = {{"name", kJob},
                           {"namespace", "default"},
                           {"uid", "uid-of-job"},
                           {"generation", 1},
                           {"resourceVersion", "1"}};
  observed.job.spec.workers.replicas = workers;
  observed.job.spec.trainer = MakeTrainer();
  observed.now = Start();
  observed.workers.since = Start();
  return observed;
}

Observed Training(int workers) {
  Observed observed = Created(workers);
  v1::TrainingJobStatus status{.round = 1, .shards = 8, .start_time = Start()};
  for (int index = 0; index < workers; ++index) {
    const std::string name = PodName(kJob, index, 0);
    const std::string address = fmt::format("127.0.0.{}:7473", index + 1);
    status.incarnations.push_back({.index = index, .incarnation = 0});
    status.members.push_back(
        {.rank = index, .pod = name, .pod_uid = PodUid(name), .address = address});
    observed.pods.push_back(std::make_shared<const Json>(MakePod(name, index, 0)));
    observed.workers.workers.push_back({.pod = name,
                                        .pod_uid = PodUid(name),
                                        .native = true,
                                        .connected = true,
                                        .last_heard = Start(),
                                        .round = 1,
                                        .ready = ReadyReport{.address = address}});
  }
  status.conditions.push_back({.type = kConditionTraining,
                               .status = "True",
                               .last_transition_time = Start(),
                               .reason = kReasonRoundStarted});
  observed.job.status = std::move(status);
  observed.now = Start() + std::chrono::minutes(1);
  return observed;
}

kube::Json& Pod(Observed& observed, int index) {
  // A copy of its own: other observations may share the object.
  kube::ObjectPtr& place = observed.pods[PlaceOf(observed, index)];
  const auto pod = std::make_shared<Json>(*place);
  place = pod;
  return *pod;
}

void SetPhase(Observed& observed, int index, const std::string& phase) {
  Pod(observed, index)["status"]["phase"] = phase;
}

void Exit(Observed& observed, int index, int code, const std::string& reason) {
  SetPhase(observed, index, code == 0 ? "Succeeded" : "Failed");
  Pod(observed, index)["status"]["containerStatuses"] =
      Json::array({{{"name", "worker"},
                    {"state", {{"terminated", {{"exitCode", code}, {"reason", reason}}}}}}});
}

void RemovePod(Observed& observed, int index) {
  observed.pods.erase(observed.pods.begin() +
                      static_cast<std::ptrdiff_t>(PlaceOf(observed, index)));
}

WorkerView& View(Observed& observed, int index) {
  return observed.workers.workers.at(index);
}

Observed After(Observed observed, const Decision& decision) {
  observed.job.status = decision.status;
  for (const Action& action : decision.actions) {
    if (const auto* create = std::get_if<CreatePod>(&action)) {
      Json pod = create->pod;
      pod["metadata"]["uid"] = PodUid(kube::Name(pod));
      pod["status"]["phase"] = "Pending";
      observed.pods.push_back(std::make_shared<const Json>(std::move(pod)));
    } else if (const auto* gone = std::get_if<DeletePod>(&action)) {
      std::erase_if(observed.pods,
                    [&](const kube::ObjectPtr& pod) { return kube::Uid(*pod) == gone->uid; });
    }
  }
  return observed;
}

std::vector<std::string> CreatedPods(const Decision& decision) {
  std::vector<std::string> names;
  for (const Action& action : decision.actions) {
    if (const auto* create = std::get_if<CreatePod>(&action)) {
      names.push_back(kube::Name(create->pod));
    }
  }
  return names;
}

std::vector<std::string> DeletedPods(const Decision& decision) {
  std::vector<std::string> names;
  for (const Action& action : decision.actions) {
    if (const auto* gone = std::get_if<DeletePod>(&action)) names.push_back(gone->name);
  }
  return names;
}

std::vector<std::string> Events(const Decision& decision) {
  std::vector<std::string> reasons;
  for (const Action& action : decision.actions) {
    if (const auto* event = std::get_if<RecordEvent>(&action)) reasons.push_back(event->reason);
  }
  return reasons;
}

std::string ConditionOf(const Decision& decision, const std::string& type) {
  const v1::Condition* condition = FindCondition(*decision.status, type);
  return condition == nullptr ? "" : condition->status + " " + condition->reason;
}

std::string MessageOf(const Decision& decision, const std::string& type) {
  const v1::Condition* condition = FindCondition(*decision.status, type);
  return condition == nullptr ? "" : condition->message;
}

std::optional<Duration> Wait(const Decision& decision) {
  const auto* later = std::get_if<controller::RequeueAfter>(&decision.result);
  return later == nullptr ? std::nullopt : std::optional<Duration>(later->delay);
}

}  // namespace ringmaster::reconcile::testing
