#include "runtime/train/session.h"

#include <filesystem>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/contract.h"
#include "common/log.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"
#include "runtime/device/available_memory.h"
#include "runtime/device/thread_cpus.h"
#include "runtime/device/threads.h"
#include "runtime/train/checkpointer.h"
#include "runtime/train/evaluator.h"
#include "runtime/train/replica.h"
#include "runtime/train/round_runner.h"
#include "runtime/train/shard_runner.h"
#include "runtime/train/start_from.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {
namespace {

// Where checkpoints go when nobody says: beside the data.
constexpr char kDefaultDirectory[] = "checkpoints";
// In the checkpoints' folder, which is the one place of a job that a worker may write to.
constexpr char kTimelineFolder[] = "timeline";

CheckpointPlan PlanFor(const training::v1alpha1::Checkpoint& config,
                       const SessionOptions& options) {
  const std::filesystem::path directory = config.directory.value_or(kDefaultDirectory);
  return {.directory = std::filesystem::path(options.workspace) / directory,
          .job = options.job,
          .every_steps = config.every_steps,
          .every_seconds = config.every_seconds,
          .keep_best = config.keep_best.value_or(false),
          .clock = options.clock};
}

Ending Failure(int exit_code, const absl::Status& status) {
  return {.exit_code = exit_code, .message = Message(status)};
}

// Reading failed for reasons of the machine: a restart may help.
int ExitCodeForData(const absl::Status& status) {
  return absl::IsInternal(status) || absl::IsResourceExhausted(status) ? ExitCodeFor(status)
                                                                       : contract::kExitBadData;
}

// Another time, or on another machine, there may be more memory.
int ExitCodeForModel(const absl::Status& status) {
  return absl::IsResourceExhausted(status) ? ExitCodeFor(status) : contract::kExitBadModel;
}

// Where each compute thread runs, in the order of the threads.
std::string CoresOfTeam() {
  const std::vector<int> cpus = device::TeamCpus();
  return cpus.empty() ? "any" : fmt::format("{}", fmt::join(cpus, ","));
}

// Patience with evaluations that never come, or lack the metric, would be without end.
absl::Status CheckEvaluation(const training::v1alpha1::WorkerConfig& config,
                             const Workload& workload) {
  RM_RETURN_IF_ERROR(CheckMetric(workload));
  const bool needed = config.trainer.evaluation.early_stop.has_value() ||
                      config.checkpoint.keep_best.value_or(false);
  if (!needed || workload.held_out().size() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "spec.trainer.evaluation.earlyStop and spec.checkpoint.keepBest go by held-out samples, and "
      "none of the data's {} is held out; hold out more of them (data.csv.holdOutEvery, "
      "data.text.holdOut)",
      workload.train().size()));
}

absl::Status CheckDirectories(const training::v1alpha1::WorkerConfig& config,
                              const SessionOptions& options) {
  if (!config.trainer.start_from) return absl::OkStatus();
  return CheckStartFrom(*config.trainer.start_from, options.workspace,
                        PlanFor(config.checkpoint, options).directory);
}

}  // namespace

struct Session::Parts {
  Parts(Workload loaded, const training::v1alpha1::WorkerConfig& config,
        const SessionOptions& options, EventSink& events, TrainerMetrics& metrics)
      : workload(std::move(loaded)),
        checkpointer(PlanFor(config.checkpoint, options), events, metrics) {}

  // The replica's memory has its place once the network is known.
  absl::Status MakeReplica(kernels::Selection kernels) {
    RM_ASSIGN_OR_RETURN(Replica made, Replica::Create(workload));
    replica = std::make_unique<Replica>(std::move(made));
    shards = std::make_unique<ShardRunner>(workload, kernels, replica->weights());
    evaluator =
        std::make_unique<Evaluator>(workload, kernels, replica->weights(), replica->states());
    return absl::OkStatus();
  }

  Workload workload;
  Checkpointer checkpointer;
  std::unique_ptr<Replica> replica;
  std::unique_ptr<ShardRunner> shards;
  std::unique_ptr<Evaluator> evaluator;
};

Session::Session(const training::v1alpha1::WorkerConfig& config, const SessionOptions& options,
                 Inbox& inbox, EventSink& events, metrics::Registry& registry)
    : config_(config), options_(options), inbox_(inbox), events_(events), metrics_(registry) {}

Session::~Session() = default;

Ending Session::Run() {
  Ending ending;
  try {
    ending = RunToTheEnd();
  } catch (const std::bad_alloc&) {
    ending = {
        .exit_code = contract::kExitNoResource,
        .message = "out of memory: the data, the model or the batch is too large for this worker"};
  }
  communicator_.reset();  // the peers hear of it now, whatever the checkpoints' writer still does
  timeline_.reset();      // the program may not live to take the session down
  return ending;
}

Ending Session::RunToTheEnd() {
  if (std::optional<Ending> ending = Prepare()) return *ending;
  while (true) {
    switch (inbox_.WaitForRound(options_.round_timeout)) {
      case Wake::kStopped:
        return {.exit_code = contract::kExitPeerLost, .message = "stopped: " + inbox_.reason()};
      case Wake::kClosed:
        return {.exit_code = contract::kExitPeerLost, .message = inbox_.reason()};
      case Wake::kDeadline:
        return {.exit_code = contract::kExitPeerLost, .message = "no round came in time"};
      case Wake::kDrain:
        return LeaveWithoutRound();
      case Wake::kRound:
        break;
    }
    if (const std::optional<Round> round = inbox_.TakeRound()) {
      if (std::optional<Ending> ending = RunRound(*round)) return *ending;
      communicator_.reset();  // peers that could not be told in time why it ended hear it now
    }
  }
}

std::optional<Ending> Session::Prepare() {
  if (const absl::Status set = device::SetThreadCount(config_.trainer.threads_per_worker);
      !set.ok()) {
    return Failure(contract::kExitBadConfig, set);
  }
  absl::StatusOr<Workload> workload =
      Workload::Load(config_.trainer, options_.workspace, options_.parts);
  if (!workload.ok()) return Failure(ExitCodeForData(workload.status()), workload.status());
  if (const absl::Status evaluated = CheckEvaluation(config_, *workload); !evaluated.ok())
    return Failure(contract::kExitBadData, evaluated);
  if (const absl::Status apart = CheckDirectories(config_, options_); !apart.ok())
    return Failure(contract::kExitBadConfig, apart);
  memory_before_ = device::OwnMemory();
  parts_ = std::make_unique<Parts>(*std::move(workload), config_, options_, events_, metrics_);
  if (const absl::Status model =
          parts_->workload.CheckModel(options_.kernels, device::FindMemoryRoom());
      !model.ok()) {
    return Failure(ExitCodeForModel(model), model);
  }
  if (const absl::Status made = parts_->MakeReplica(options_.kernels); !made.ok()) {
    return Failure(contract::kExitBadConfig, made);
  }
  if (std::optional<Ending> ending = OpenListener()) return ending;
  const Workload& ready = parts_->workload;
  events_.Send(0, Ready{.address = listener_->address(),
                        .kernels_digest = ready.kernels_digest(),
                        .model = ready.Describe(),
                        .parameters = ready.layout().ParameterCount(),
                        .total_steps = static_cast<int64_t>(ready.total_steps())});
  log::Info("ready", {{"address", listener_->address()},
                      {"model", ready.Describe()},
                      {"samples", ready.train().size()},
                      {"steps", ready.total_steps()},
                      {"threads", device::ThreadCount()},
                      {"cores", CoresOfTeam()}});
  return std::nullopt;
}

// The usual port may be another worker's that shares this address: any other will do, for Ready
// names it.
std::optional<Ending> Session::OpenListener() {
  auto listener = collectives::tcp::Listener::Open(options_.listen);
  if (!listener.ok() && !absl::IsInvalidArgument(listener.status())) {
    log::Warning("the worker's port cannot be had; taking any", {{"error", listener.status()}});
    const std::string host = options_.listen.substr(0, options_.listen.rfind(':'));
    listener = collectives::tcp::Listener::Open(host + ":0");
  }
  if (!listener.ok()) return Failure(ExitCodeFor(listener.status()), listener.status());
  listener_ = *std::move(listener);
  return std::nullopt;
}

// Nothing is lost that was ever promised: the newest checkpoint is on disk.
Ending Session::LeaveWithoutRound() {
  const int64_t step = parts_->checkpointer.last_durable_step();
  events_.Send(round_, Drained{.step = step});
  return {.exit_code = contract::kExitOk, .message = "drained between rounds: " + inbox_.reason()};
}

// One file for all rounds. Training goes on without it.
void Session::OpenTimeline(int rank) {
  if (!config_.trainer.gradients.timeline || timeline_ != nullptr) return;
  const std::string name = options_.worker.empty() ? fmt::format("{}", rank) : options_.worker;
  auto timeline = collectives::Timeline::Open(
      PlanFor(config_.checkpoint, options_).directory / kTimelineFolder / (name + ".json"), rank,
      name);
  if (timeline.ok()) {
    timeline_ = *std::move(timeline);
  } else {
    log::Warning("no timeline is written", {{"error", timeline.status()}});
  }
}

std::optional<Ending> Session::RunRound(const Round& round) {
  round_ = round.number;
  metrics_.rounds.Increment();
  collectives::CommunicatorOptions options;
  options.job = options_.job;
  options.round = static_cast<uint64_t>(round.number);
  options.rank = round.rank;
  options.members = round.members;
  options.key = round.key;
  options.connect_timeout = options_.connect_timeout;
  options.operation_timeout = options_.operation_timeout;
  options.algorithm = options_.algorithm;
  options.congestion_control = options_.congestion_control;
  if (config_.trainer.gradients.encryption == training::v1alpha1::Encryption::kTls) {
    options.encryption = collectives::Encryption::kTls;
    log::Info("connections between workers are encrypted",
              {{"with", "TLS 1.3"}, {"round", round.number}});
  }
  // No virtual shards is the plain ring, whatever would be faster.
  if (options.algorithm == collectives::Algorithm::kAuto && round.shards == 0)
    options.algorithm = collectives::Algorithm::kRing;
  auto communicator = collectives::Communicator::Create(options, *listener_);
  if (!communicator.ok()) {
    return Failure(ExitCodeFor(communicator.status()), communicator.status());
  }
  communicator_ = *std::move(communicator);
  OpenTimeline(round.rank);
  const Inbox::Interrupt interrupt(
      inbox_, [this](const std::string& reason) { communicator_->Abort(reason); });
  const RoundContext context{.options = options_,
                             .workload = parts_->workload,
                             .replica = *parts_->replica,
                             .shards = *parts_->shards,
                             .evaluator = *parts_->evaluator,
                             .checkpointer = parts_->checkpointer,
                             .inbox = inbox_,
                             .events = events_,
                             .metrics = metrics_,
                             .timeline = timeline_.get(),
                             .memory_before = memory_before_};
  absl::StatusOr<std::optional<Ending>> ending = RoundRunner(context, round, *communicator_).Run();
  if (ending.ok()) return *std::move(ending);
  return AfterFailure(round, ending.status());
}

std::optional<Ending> Session::AfterFailure(const Round& round, const absl::Status& status) {
  const bool over = inbox_.RoundIsOver();
  // The communicator is whole, or this worker's memory ran out in it: the error is its own.
  const bool own =
      communicator_->status().ok() ||
      (absl::IsResourceExhausted(status) && communicator_->suspect() == communicator_->rank());
  if (!over && own) return Failure(ExitCodeFor(status), status);
  // Whether the operator's word or the broken connection came first.
  metrics_.rounds_lost.Increment();
  if (over) return std::nullopt;
  log::Warning("round lost", {{"round", round.number}, {"error", status}});
  events_.Send(round.number,
               PeerLost{.rank = communicator_->suspect(), .message = Message(status)});
  return std::nullopt;
}

}  // namespace ringmaster::train
