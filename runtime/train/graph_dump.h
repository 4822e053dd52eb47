// What becomes of a job's network, stage by stage: files for people.
#ifndef RINGMASTER_RUNTIME_TRAIN_GRAPH_DUMP_H_
#define RINGMASTER_RUNTIME_TRAIN_GRAPH_DUMP_H_

#include <filesystem>

#include "absl/status/status.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {

// Writes, each as text (.txt) and for Graphviz (.dot), for the job's largest shard:
//   1-model      the training graph as it was built
//   2-gradients  the same with its backward pass
//   2.NN-PASS    after the NN-th pass, for each of graph/passes/passes.h
//   3-plan       as it runs: kernels in their order, and places in the arena
// and, where samples are held out, for those that are evaluated at once:
//   4-evaluation as it runs, the same
// Makes the folder; files of these names are replaced. After Workload::CheckModel. Errors are those
// of files.
absl::Status DumpGraphs(const Workload& workload, kernels::Selection kernels,
                        const std::filesystem::path& folder);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_GRAPH_DUMP_H_
