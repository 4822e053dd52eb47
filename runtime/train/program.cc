#include "runtime/train/program.h"

#include <algorithm>
#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/contract.h"
#include "common/env.h"
#include "common/host_port.h"
#include "common/log.h"
#include "common/metrics.h"
#include "common/peer_address.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"
#include "runtime/device/available_memory.h"
#include "runtime/device/thread_cpus.h"
#include "runtime/device/threads.h"
#include "runtime/train/channel.h"
#include "runtime/train/graph_dump.h"
#include "runtime/train/inbox.h"
#include "runtime/train/job_evaluation.h"
#include "runtime/train/job_profile.h"
#include "runtime/train/session.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {
namespace {

using training::v1alpha1::WorkerConfig;

constexpr char kLoopback[] = "127.0.0.1";

// A full disk and a reader that left are errors of a call here, and only the launcher says when to
// go: a signal to the whole process group must not end a worker that is about to checkpoint.
void SetSignals() {
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGTERM, SIGINT}) std::signal(signal, SIG_IGN);
}

std::string Address() {
  const std::string address = env::GetString(contract::kEnvPodIp);
  return address.empty() ? kLoopback : address;
}

struct Endpoint {
  metrics::Registry registry;
  std::unique_ptr<metrics::Server> server;
};

// It lives as long as the process.
metrics::Registry& ServedRegistry() {
  static auto* const endpoint = new Endpoint;
  auto server =
      metrics::Server::Start(endpoint->registry, JoinHostPort(Address(), contract::kMetricsPort));
  if (server.ok()) {
    endpoint->server = *std::move(server);
  } else {
    log::Warning("no metrics are served", {{"error", server.status()}});
  }
  return endpoint->registry;
}

// It lives as long as the process, too: whoever takes a session down waits for its checkpoints'
// writer, and so for a disk that may hang.
struct Program {
  WorkerConfig config;
  Inbox inbox{};
  std::unique_ptr<Channel> channel{};
  std::unique_ptr<Session> session{};
};

// How long a peer may be silent inside an operation.
absl::StatusOr<std::chrono::seconds> ReadPeerTimeout() {
  constexpr char kName[] = "RINGMASTER_PEER_TIMEOUT_SECONDS";
  constexpr int64_t kMost = 24 * 60 * 60;
  RM_ASSIGN_OR_RETURN(const int64_t seconds, env::GetInteger(kName));
  if (seconds < 1 || seconds > kMost) {
    return absl::InvalidArgumentError(
        fmt::format("environment variable {}: {} is not 1 to {}", kName, seconds, kMost));
  }
  return std::chrono::seconds(seconds);
}

absl::Status NoConfig() {
  return absl::InvalidArgumentError(fmt::format(
      "environment variable {} is not set: a trainer is no command for people, a launcher starts "
      "it; run a manifest that names it in spec.trainer.program",
      contract::kEnvTrainerConfig));
}

// Before any other thread is made. Training is as right where they crowd.
void PlaceThreads() {
  const absl::Status placed = device::PlaceOtherThreadsAsTold();
  if (!placed.ok()) {
    log::Warning("threads that do not compute run beside one that does", {{"error", placed}});
  } else if (env::IsSet(contract::kEnvOtherCpus)) {
    log::Info("threads that do not compute have their place",
              {{"cores", env::GetString(contract::kEnvOtherCpus)}});
  }
}

// What the environment asks for.
struct Job {
  SessionOptions options;
  WorkerConfig config;
};

absl::StatusOr<Job> ReadJob(Parts parts) {
  RM_RETURN_IF_ERROR(parts.status());
  Job job;
  RM_ASSIGN_OR_RETURN(job.options, ReadOptions());
  job.options.parts = std::move(parts);
  const std::string json = env::GetString(contract::kEnvTrainerConfig);
  if (json.empty()) return NoConfig();
  RM_ASSIGN_OR_RETURN(job.config, ParseWorkerConfig(json));
  return job;
}

absl::StatusOr<Workload> LoadWorkload(const Job& job) {
  const training::v1alpha1::TrainerConfig& trainer = job.config.trainer;
  RM_RETURN_IF_ERROR(device::SetThreadCount(trainer.threads_per_worker));
  return Workload::Load(trainer, job.options.workspace, job.options.parts);
}

}  // namespace

absl::StatusOr<WorkerConfig> ParseWorkerConfig(const std::string& json) {
  nlohmann::json object = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) {
    return absl::InvalidArgumentError(fmt::format("{}: not JSON", contract::kEnvTrainerConfig));
  }
  auto config = training::v1alpha1::FromJson<WorkerConfig>(std::move(object));
  if (!config.ok()) return Annotate(config.status(), contract::kEnvTrainerConfig);
  return config;
}

absl::StatusOr<SessionOptions> ReadOptions() {
  RM_RETURN_IF_ERROR(env::CheckAll());
  SessionOptions options;
  options.workspace = env::GetString(contract::kEnvWorkspace);
  options.job = fmt::format("{}/{}", env::GetString(contract::kEnvNamespace),
                            env::GetString(contract::kEnvJob));
  options.worker = env::GetString(contract::kEnvPodName);
  RM_ASSIGN_OR_RETURN(const std::string address, PeerAddress(Address()));
  options.listen = JoinHostPort(address, contract::kWorkerPort);
  RM_ASSIGN_OR_RETURN(options.operation_timeout, ReadPeerTimeout());
  // A peer that computes opens the round only after its step.
  options.connect_timeout = std::max(options.connect_timeout, options.operation_timeout);
  RM_ASSIGN_OR_RETURN(options.algorithm, collectives::AlgorithmFromEnvironment());
  options.congestion_control = env::GetString("RINGMASTER_TCP_CONGESTION_CONTROL");
  constexpr char kForceKernels[] = "RINGMASTER_FORCE_KERNELS";
  const std::string forced = env::GetString(kForceKernels);
  if (!kernels::ParseSelection(forced, &options.kernels)) {
    return absl::InvalidArgumentError(fmt::format(
        "environment variable {}: '{}' is not reference or onednn", kForceKernels, forced));
  }
  RM_ASSIGN_OR_RETURN(options.debug.arrival_order,
                      env::GetBoolean("RINGMASTER_DEBUG_ARRIVAL_ORDER"));
  RM_ASSIGN_OR_RETURN(options.debug.local_streams,
                      env::GetBoolean("RINGMASTER_DEBUG_LOCAL_STREAMS"));
  RM_ASSIGN_OR_RETURN(options.debug.local_statistics,
                      env::GetBoolean("RINGMASTER_DEBUG_LOCAL_STATISTICS"));
  return options;
}

absl::Status DumpJob(Parts parts, const std::string& folder) {
  RM_ASSIGN_OR_RETURN(const Job job, ReadJob(std::move(parts)));
  RM_ASSIGN_OR_RETURN(Workload workload, LoadWorkload(job));
  RM_RETURN_IF_ERROR(workload.CheckModel(job.options.kernels));
  return DumpGraphs(workload, job.options.kernels, folder);
}

absl::Status ProfileJob(Parts parts, const std::string& folder) {
  RM_ASSIGN_OR_RETURN(const Job job, ReadJob(std::move(parts)));
  RM_ASSIGN_OR_RETURN(Workload workload, LoadWorkload(job));
  RM_RETURN_IF_ERROR(workload.CheckModel(job.options.kernels, device::FindMemoryRoom()));
  return ProfileSteps(workload, job.options.kernels, folder);
}

absl::StatusOr<std::string> EvaluateJob(Parts parts, std::span<const std::string> saved,
                                        bool as_json) {
  RM_ASSIGN_OR_RETURN(const Job job, ReadJob(std::move(parts)));
  RM_ASSIGN_OR_RETURN(Workload workload, LoadWorkload(job));
  RM_RETURN_IF_ERROR(workload.CheckModel(job.options.kernels, device::FindMemoryRoom()));
  std::vector<SavedWeights> weights;
  for (const std::string& one : saved) weights.push_back(ParseSavedWeights(one));
  RM_ASSIGN_OR_RETURN(const JobEvaluation evaluation,
                      EvaluateSaved(workload, job.options.kernels, weights));
  return as_json ? ToJson(evaluation) : ToTable(evaluation);
}

Ending RunTrainer(const Parts& parts) {
  SetSignals();
  auto job = ReadJob(parts);
  if (!job.ok()) return {contract::kExitBadConfig, Message(job.status())};
  PlaceThreads();
  static auto* const program = new Program{.config = std::move(job->config)};
  auto channel = Channel::Dial(env::GetString(contract::kEnvChannel), program->inbox);
  if (!channel.ok()) {
    return {.exit_code = contract::kExitPeerLost, .message = Message(channel.status())};
  }
  program->channel = *std::move(channel);
  program->session = std::make_unique<Session>(program->config, job->options, program->inbox,
                                               *program->channel, ServedRegistry());
  return program->session->Run();
}

}  // namespace ringmaster::train
