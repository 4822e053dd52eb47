// What workers say to the operator.
#include <algorithm>

#include <fmt/format.h>

#include "common/contract.h"
#include "common/sha256.h"
#include "common/status.h"
#include "operator/kube/object.h"
#include "ringmaster/rendezvous/v1/rendezvous.pb.h"
#include "tests/scenarios/runner.h"

namespace ringmaster::scenarios {
namespace {

namespace v1 = rendezvous::v1;

bool Runs(const kube::Json& pod) {
  return kube::FindString(pod, {"status", "phase"}) == "Running" && !kube::IsDeleting(pod);
}

// The job that the pod says it is of.
kube::ObjectKey JobOf(const Runner& runner, const kube::Json& pod) {
  return {kube::Namespace(pod), kube::Label(pod, contract::kLabelJob).value_or(runner.job().name)};
}

// Joins the worker of a pod, at an address that follows from the pod's labels.
void Join(Runner& runner, const kube::Json& pod, const Command& command) {
  const auto index = kube::Label(pod, contract::kLabelIndex).value_or("0");
  const kube::ObjectKey key = JobOf(runner, pod);
  const absl::StatusOr<kube::Json> job = runner.world().api().Get(kube::kTrainingJob, key);
  const bool native = job.ok() && kube::Find(*job, {"spec", "trainer"}) != nullptr;
  runner.world().workers().Join(
      {key, kube::Name(pod), kube::Uid(pod)}, native,
      command.Option("address", fmt::format("127.0.0.{}:7473", std::stoi(index) + 1)),
      command.Option("kernels"));
}

void JoinMany(Runner& runner, const Command& command) {
  const testing::ScriptedWorkers& workers = runner.world().workers();
  for (const kube::ObjectPtr& pod : runner.Pods()) {
    const std::vector<std::string> connected = workers.Connected(JobOf(runner, *pod));
    const bool joined = std::ranges::find(connected, kube::Name(*pod)) != connected.end();
    if (Runs(*pod) && !joined && !workers.HasLeft(kube::KeyOf(*pod))) Join(runner, *pod, command);
  }
}

void FillProgress(const Command& command, v1::Progress& progress) {
  progress.set_step(command.Number("step", 0));
  progress.set_total_steps(command.Number("total", 400));
  progress.set_epoch(command.Real("epoch", 0));
  progress.set_loss(command.Real("loss", 0.5));
  progress.set_accuracy(-1);
  progress.set_samples_per_second(command.Real("rate", 1000));
  progress.set_step_seconds(command.Real("step-seconds", 0.01));
}

void FillDurable(const Command& command, const std::string& pod, v1::ShardDurable& shard) {
  shard.set_step(command.Number("step", 0));
  shard.set_digest(Hex(Sha256Of(fmt::format("{} of {}", shard.step(), pod))));
  if (!command.Option("value").empty()) shard.set_metric_value(command.Real("value", 0));
}

void FillFinished(const Command& command, v1::Finished& finished) {
  finished.set_weights_sha256(command.Option("sha", "5f1c"));
  finished.set_steps(command.Number("steps", 400));
  finished.set_accuracy(command.Real("accuracy", 0.978));
  finished.set_loss(command.Real("loss", 0.08));
  finished.set_stopped_early(command.Option("stopped"));
}

void FillTrouble(const Command& command, auto& trouble) {
  trouble.set_step(command.Number("step", 0));
  trouble.set_message(command.Option("message"));
}

// worker <name|all> <what> [options]: what a worker says, or what becomes of its stream.
//   join [address=A] [kernels=D]     it dials in: Hello and Ready, and again what it has said that
//                                    still holds; `all` joins every running pod, of any job, that
//                                    is not connected and whose program has not ended
//   lost                             its stream ends; nobody says why
//   silent                           it says nothing any more, and its stream stays
//   progress step=N [total=400] [loss=0.5] [epoch=] [rate=] [step-seconds=]
//   durable step=N [round=R] [value=V]  its shard of that checkpoint is on disk, where the
//                                       evaluation found that
//   cannot-write step=N message=...
//   rejects step=N message=...       the checkpoint does not load
//   says-lost rank=N                 its peer is gone
//   finished [steps=400] [accuracy=] [sha=] [stopped=WHY]
//   asked-to-leave                   its launcher got SIGTERM
//   drained step=N
//   exited code=N [message=...] [out-of-memory=yes]
//                                    its program has ended; the pod does not say so yet
// `all` means every connected worker, but for join.
bool FillEvent(const Command& command, const std::string& pod, v1::Event& event) {
  const std::string& what = command.words[1];
  if (what == "progress") {
    FillProgress(command, *event.mutable_progress());
  } else if (what == "durable") {
    FillDurable(command, pod, *event.mutable_shard_durable());
  } else if (what == "cannot-write") {
    FillTrouble(command, *event.mutable_checkpoint_failed());
  } else if (what == "rejects") {
    FillTrouble(command, *event.mutable_checkpoint_rejected());
  } else if (what == "says-lost") {
    event.mutable_peer_lost()->set_rank(static_cast<int>(command.Number("rank", 0)));
    event.mutable_peer_lost()->set_message("connection reset");
  } else if (what == "finished") {
    FillFinished(command, *event.mutable_finished());
  } else if (what == "asked-to-leave") {
    event.mutable_drain_requested()->set_reason("SIGTERM");
  } else if (what == "drained") {
    event.mutable_drained()->set_step(command.Number("step", 0));
  } else if (what == "exited") {
    event.mutable_exited()->set_exit_code(static_cast<int>(command.Number("code", 0)));
    event.mutable_exited()->set_message(command.Option("message"));
    event.mutable_exited()->set_out_of_memory(command.Option("out-of-memory") == "yes");
  } else {
    return false;
  }
  return true;
}

absl::Status TouchWorker(Runner& runner, const std::string& pod, const Command& command) {
  const std::string& what = command.words[1];
  const kube::ObjectKey key = runner.PodKey(pod);
  testing::ScriptedWorkers& workers = runner.world().workers();
  if (what == "join") {
    RM_ASSIGN_OR_RETURN(const kube::Json object, runner.world().api().Get(kube::kPod, key));
    Join(runner, object, command);
    return absl::OkStatus();
  }
  if (what == "lost") {
    workers.Leave(key);
    return absl::OkStatus();
  }
  if (what == "silent") {
    workers.FallSilent(key);
    return absl::OkStatus();
  }
  v1::Event event;
  event.set_round(command.Number("round", workers.RoundOf(key)));
  if (!FillEvent(command, pod, event))
    return absl::InvalidArgumentError("workers do not say " + what);
  return workers.Say(key, event);
}

absl::Status Worker(Runner& runner, const Command& command, std::string*) {
  if (command.words.size() != 2) return absl::InvalidArgumentError("worker <name|all> <what>");
  if (command.words[0] != "all") return TouchWorker(runner, command.words[0], command);
  if (command.words[1] == "join") {
    JoinMany(runner, command);
    return absl::OkStatus();
  }
  for (const std::string& pod : runner.world().workers().Connected(runner.job())) {
    RM_RETURN_IF_ERROR(TouchWorker(runner, pod, command));
  }
  return absl::OkStatus();
}

}  // namespace

void AddWorkerCommands(Handlers& handlers) {
  handlers["worker"] = Worker;
}

}  // namespace ringmaster::scenarios
