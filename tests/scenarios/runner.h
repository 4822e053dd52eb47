// Runs the commands of a scenario against an OperatorWorld and gives back what they print.
//
// The commands, their words and options are documented in tests/scenarios/README.md and where each
// is parsed, in commands_*.cc. A command that cannot be carried out prints `error: ...`, which the
// golden output would have to show: a scenario with a typing error does not pass by chance.
#ifndef RINGMASTER_TESTS_SCENARIOS_RUNNER_H_
#define RINGMASTER_TESTS_SCENARIOS_RUNNER_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/scenarios/script.h"
#include "tests/support/operator_world.h"
#include "tests/support/scripted_kubelet.h"

namespace ringmaster::scenarios {

class Runner {
 public:
  Runner();

  // What the command prints: what the operator did, then what the command itself has to show.
  std::string Execute(const Command& command);

  testing::OperatorWorld& world() { return world_; }
  testing::ScriptedKubelet& kubelet() { return kubelet_; }
  const std::vector<Command>& history() const { return history_; }

  // The job that commands speak of: the last one applied.
  const kube::ObjectKey& job() const { return job_; }
  void set_job(kube::ObjectKey job) { job_ = std::move(job); }
  kube::ObjectKey PodKey(const std::string& name) const { return {job_.ns, name}; }
  absl::StatusOr<kube::Json> Job();
  std::vector<kube::ObjectPtr> Pods();

  // Runs the loop; prints broken invariants.
  std::string Run();

 private:
  testing::OperatorWorld world_;
  testing::ScriptedKubelet kubelet_;
  kube::ObjectKey job_{.ns = "default", .name = ""};
  std::vector<Command> history_;
};

using Handler =
    std::function<absl::Status(Runner& runner, const Command& command, std::string* output)>;
using Handlers = std::map<std::string, Handler>;

// The commands by theme; each file documents its own.
void AddClusterCommands(Handlers& handlers);   // commands_cluster.cc: what users and kubelets do
void AddWorkerCommands(Handlers& handlers);    // commands_worker.cc: what workers say
void AddOperatorCommands(Handlers& handlers);  // commands_operator.cc: the loop, time, failures

}  // namespace ringmaster::scenarios

#endif  // RINGMASTER_TESTS_SCENARIOS_RUNNER_H_
