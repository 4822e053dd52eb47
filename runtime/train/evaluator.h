// Evaluates the held-out samples, shared by all ranks, each sample once.
//
// The samples are cut into fixed blocks; a rank computes a range of them, and the blocks' sums are
// added in the fixed tree over blocks. So the result does not depend on the world size.
#ifndef RINGMASTER_RUNTIME_TRAIN_EVALUATOR_H_
#define RINGMASTER_RUNTIME_TRAIN_EVALUATOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "runtime/collectives/communicator.h"
#include "runtime/data/sample_stream.h"
#include "runtime/graph/executor.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {

struct Evaluation {
  double loss = 0;       // mean over labels
  double accuracy = -1;  // share of labels that were right; negative when nothing is held out
};

// Not thread-safe; must not outlive the workload and the buffers.
class Evaluator {
 public:
  // Reads the replica's `weights` and running statistics `states` at each Run.
  Evaluator(const Workload& workload, kernels::Selection kernels, std::span<float> weights,
            std::span<float> states);

  // Every rank of the round calls it. Blocks and fails as the communicator's operations do.
  absl::StatusOr<Evaluation> Run(collectives::Communicator& communicator);

 private:
  struct Prepared {
    std::unique_ptr<graph::Executor> executor;
    tensor::Tensor inputs;
    tensor::Tensor labels;
  };
  struct Sums {
    double loss = 0;
    double correct = 0;
  };
  absl::StatusOr<Prepared*> PreparedFor(int64_t samples);
  absl::StatusOr<Sums> RunBlock(data::RowRange rows);

  const Workload& workload_;
  const kernels::Selection kernels_;
  const std::span<float> weights_;
  const std::span<float> states_;
  std::map<int64_t, Prepared> prepared_;  // by samples: the whole block, and the last one
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_EVALUATOR_H_
