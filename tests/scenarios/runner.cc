#include "tests/scenarios/runner.h"

#include <fmt/format.h>

#include "common/status.h"
#include "tests/scenarios/render.h"

namespace ringmaster::scenarios {
namespace {

const Handlers& AllHandlers() {
  static const Handlers handlers = [] {
    Handlers all;
    AddClusterCommands(all);
    AddWorkerCommands(all);
    AddOperatorCommands(all);
    return all;
  }();
  return handlers;
}

}  // namespace

Runner::Runner() : kubelet_(world_.api(), world_.clock()) {}

std::string Runner::Execute(const Command& command) {
  const auto handler = AllHandlers().find(command.name);
  if (handler == AllHandlers().end()) {
    return fmt::format("error: line {}: no command {}\n", command.line, command.name);
  }
  std::string own;
  const absl::Status done = handler->second(*this, command, &own);
  history_.push_back(command);
  std::string output = world_.TakeLog() + own;
  if (!done.ok()) output += fmt::format("error: {}\n", Message(done));
  return output;
}

absl::StatusOr<kube::Json> Runner::Job() {
  return world_.api().Get(kube::kTrainingJob, job_);
}

std::vector<kube::ObjectPtr> Runner::Pods() {
  const auto list = world_.api().List(kube::kPod, job_.ns, {});
  return list.ok() ? list->items : std::vector<kube::ObjectPtr>{};
}

std::string Runner::Run() {
  const absl::Status ran = world_.Run();
  if (!ran.ok()) return fmt::format("error: {}\n", Message(ran));
  const absl::StatusOr<kube::Json> job = Job();
  return job.ok() ? BrokenInvariants(*job) : "";
}

}  // namespace ringmaster::scenarios
