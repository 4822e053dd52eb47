// What workers say to the operator.
#include <algorithm>

#include <fmt/format.h>

#include "common/sha256.h"
#include "common/status.h"
#include "operator/kube/object.h"
#include "tests/scenarios/runner.h"

namespace ringmaster::scenarios {
namespace {

using reconcile::WorkerView;
using Change = std::function<void(WorkerView&)>;

bool Runs(const kube::Json& pod) {
  return kube::FindString(pod, {"status", "phase"}) == "Running" && !kube::IsDeleting(pod);
}

// Joins the worker of a pod, at an address that follows from the pod's labels.
absl::Status Join(Runner& runner, const kube::Json& pod, const Command& command) {
  const auto index = kube::Label(pod, "training.ringmaster.dev/index").value_or("0");
  runner.world().workers().Join(
      runner.job(), kube::Name(pod), kube::Uid(pod),
      command.Option("address", fmt::format("127.0.0.{}:7473", std::stoi(index) + 1)),
      command.Number("round", 0));
  const std::string kernels = command.Option("kernels");
  runner.world().workers().Change(runner.job(), kube::Name(pod),
                                  [&](WorkerView& view) { view.ready->kernels_digest = kernels; });
  return absl::OkStatus();
}

absl::Status JoinMany(Runner& runner, const Command& command) {
  const std::vector<std::string> connected = runner.world().workers().Connected(runner.job());
  for (const kube::ObjectPtr& pod : runner.Pods()) {
    const bool joined =
        std::find(connected.begin(), connected.end(), kube::Name(*pod)) != connected.end();
    if (Runs(*pod) && !joined) RM_RETURN_IF_ERROR(Join(runner, *pod, command));
  }
  return absl::OkStatus();
}

Change Progress(const Command& command, Time now) {
  return [=](WorkerView& view) {
    view.progress = reconcile::ProgressReport{
        .round = view.round,
        .step = command.Number("step", 0),
        .total_steps = command.Number("total", 400),
        .epoch = command.Real("epoch", 0),
        .loss = command.Real("loss", 0.5),
        .samples_per_second = command.Real("rate", 1000),
        .step_seconds = command.Real("step-seconds", 0.01),
        .time = now,
    };
  };
}

Change Durable(const Command& command) {
  return [=](WorkerView& view) {
    const std::int64_t step = command.Number("step", 0);
    const Sha256Digest digest = Sha256Of(fmt::format("{} of {}", step, view.pod));
    view.durable.push_back(
        {.round = command.Number("round", view.round), .step = step, .digest = Hex(digest)});
  };
}

Change Finished(const Command& command) {
  return [=](WorkerView& view) {
    view.finished = reconcile::FinishedReport{.round = view.round,
                                              .weights_sha256 = command.Option("sha", "5f1c"),
                                              .steps = command.Number("steps", 400),
                                              .accuracy = command.Real("accuracy", 0.978),
                                              .loss = command.Real("loss", 0.08)};
  };
}

reconcile::CheckpointTrouble Trouble(const Command& command, const WorkerView& view, Time now) {
  return {.round = view.round,
          .step = command.Number("step", 0),
          .message = command.Option("message"),
          .time = now};
}

// worker <name|all> <what> [options]: what a worker says, or what becomes of its stream.
//   join [round=N] [address=A] [kernels=D]   Hello and Ready; `all` joins every running pod that
//                                    has not
//   lost                             its stream ends; nobody says why
//   progress step=N [total=400] [loss=0.5] [epoch=] [rate=] [step-seconds=]
//   durable step=N [round=R]         its shard of that checkpoint is on disk
//   cannot-write step=N message=...
//   rejects step=N message=...       the checkpoint does not load
//   says-lost rank=N                 its peer is gone
//   finished [steps=400] [accuracy=] [sha=]
//   asked-to-leave                   its launcher got SIGTERM
//   drained step=N
//   exited code=N [message=...]      its program has ended; the pod does not say so yet
// `all` means every connected worker, but for join.
Change ChangeFor(const Command& command, Time now) {
  const std::string& what = command.words[1];
  if (what == "progress") return Progress(command, now);
  if (what == "durable") return Durable(command);
  if (what == "finished") return Finished(command);
  if (what == "asked-to-leave") {
    return [=](WorkerView& view) { view.drain_requested = now; };
  }
  if (what == "drained") {
    return [=](WorkerView& view) { view.drained_step = command.Number("step", 0); };
  }
  if (what == "cannot-write") {
    return
        [=](WorkerView& view) { view.checkpoint_failures.push_back(Trouble(command, view, now)); };
  }
  if (what == "rejects") {
    return [=](WorkerView& view) {
      view.checkpoint_rejections.push_back(Trouble(command, view, now));
    };
  }
  if (what == "says-lost") {
    return [=](WorkerView& view) {
      view.peers_lost.push_back({.round = view.round,
                                 .rank = static_cast<int>(command.Number("rank", 0)),
                                 .message = "connection reset",
                                 .time = now});
    };
  }
  if (what == "exited") {
    return [=](WorkerView& view) {
      view.exited = reconcile::ExitReport{.exit_code = static_cast<int>(command.Number("code", 0)),
                                          .message = command.Option("message"),
                                          .time = now};
    };
  }
  return nullptr;
}

absl::Status TouchWorker(Runner& runner, const std::string& pod, const Command& command) {
  const std::string& what = command.words[1];
  testing::ScriptedWorkers& workers = runner.world().workers();
  if (what == "join") {
    RM_ASSIGN_OR_RETURN(const kube::Json object,
                        runner.world().api().Get(kube::kPod, runner.PodKey(pod)));
    return Join(runner, object, command);
  }
  if (what == "lost") {
    workers.Leave(runner.job(), pod);
    return absl::OkStatus();
  }
  const Change change = ChangeFor(command, runner.world().clock().Now());
  if (change == nullptr) return absl::InvalidArgumentError("workers do not say " + what);
  if (!workers.Change(runner.job(), pod, change)) {
    return absl::NotFoundError(fmt::format("the worker of {} has never joined", pod));
  }
  return absl::OkStatus();
}

absl::Status Worker(Runner& runner, const Command& command, std::string*) {
  if (command.words.size() != 2) return absl::InvalidArgumentError("worker <name|all> <what>");
  if (command.words[0] != "all") return TouchWorker(runner, command.words[0], command);
  if (command.words[1] == "join") return JoinMany(runner, command);
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
