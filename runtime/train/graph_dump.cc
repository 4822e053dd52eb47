#include "runtime/train/graph_dump.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/file.h"
#include "common/status.h"
#include "runtime/graph/dump.h"

namespace ringmaster::train {
namespace {

absl::Status WriteStage(const std::filesystem::path& stage, const graph::Dump& dump) {
  RM_RETURN_IF_ERROR(WriteFileAtomically(stage.string() + ".txt", dump.text));
  return WriteFileAtomically(stage.string() + ".dot", dump.dot);
}

// Of a whole pass, of as many samples as CheckModel counts memory for; nothing where none are held
// out.
absl::Status DumpEvaluation(const Workload& workload, kernels::Selection kernels,
                            const std::filesystem::path& stage) {
  const int64_t samples =
      std::min<int64_t>(workload.evaluated_at_once(), workload.held_out().size());
  if (samples == 0) return absl::OkStatus();
  RM_ASSIGN_OR_RETURN(const nn::Model model, workload.Build(nn::Mode::kEvaluation, samples));
  RM_ASSIGN_OR_RETURN(const graph::Dump plan, graph::DumpPlan(model.graph, {.kernels = kernels}));
  return WriteStage(stage, plan);
}

}  // namespace

absl::Status DumpGraphs(const Workload& workload, kernels::Selection kernels,
                        const std::filesystem::path& folder) {
  const int64_t batch = workload.layout().inputs.shape.dim(0);
  RM_ASSIGN_OR_RETURN(const nn::Model model,
                      workload.Build(nn::Mode::kTraining, batch, /*gradients=*/false));
  const graph::Graph& whole = workload.layout().graph;
  std::vector<graph::PassDump> passes;
  RM_ASSIGN_OR_RETURN(graph::Dump plan,
                      graph::DumpPlan(whole, workload.StepOptions(kernels), &passes));
  if (workload.synchronises()) {
    plan.text.insert(plan.text.find('\n') + 1,
                     "the arena of a worker with one shard; with more, as batch norm is "
                     "synchronised, each has one of its own, planned for its part of "
                     "stepMemoryBytes\n");
  }
  RM_RETURN_IF_ERROR(MakeDirectories(folder));
  RM_RETURN_IF_ERROR(
      WriteStage(folder / "1-model", {ToString(model.graph), graph::ToDot(model.graph)}));
  RM_RETURN_IF_ERROR(WriteStage(folder / "2-gradients", {ToString(whole), graph::ToDot(whole)}));
  int place = 0;
  for (const graph::PassDump& dump : passes)
    RM_RETURN_IF_ERROR(
        WriteStage(folder / fmt::format("2.{:02}-{}", ++place, dump.pass), dump.made));
  RM_RETURN_IF_ERROR(WriteStage(folder / "3-plan", plan));
  return DumpEvaluation(workload, kernels, folder / "4-evaluation");
}

}  // namespace ringmaster::train
