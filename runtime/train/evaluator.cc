#include "runtime/train/evaluator.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "common/status.h"
#include "runtime/collectives/ordered_sum.h"
#include "runtime/nn/binding.h"

namespace ringmaster::train {
namespace {

constexpr int64_t kBlockSamples = 64;

// The blocks of `rank`; none for ranks beyond the number of blocks.
collectives::ShardRange BlocksOf(int blocks, int world, int rank) {
  const int sharing = std::min(blocks, world);
  if (rank >= sharing) return {};
  return collectives::OwnedShards(blocks, sharing, rank);
}

}  // namespace

Evaluator::Evaluator(const Workload& workload, kernels::Selection kernels, std::span<float> weights,
                     std::span<float> states)
    : workload_(workload), kernels_(kernels), weights_(weights), states_(states) {}

absl::StatusOr<Evaluator::Prepared*> Evaluator::PreparedFor(int64_t samples) {
  if (const auto found = prepared_.find(samples); found != prepared_.end()) return &found->second;
  RM_ASSIGN_OR_RETURN(const nn::Model model, workload_.Build(nn::Mode::kEvaluation, samples));
  Prepared made;
  RM_ASSIGN_OR_RETURN(made.executor, graph::Executor::Compile(model.graph, {.kernels = kernels_}));
  made.inputs = tensor::Tensor(model.inputs.shape, model.inputs.dtype);
  made.labels = tensor::Tensor(model.labels.shape, model.labels.dtype);
  RM_RETURN_IF_ERROR(made.executor->Bind(nn::kInputs, made.inputs));
  RM_RETURN_IF_ERROR(made.executor->Bind(nn::kLabels, made.labels));
  RM_RETURN_IF_ERROR(nn::BindParameters(model, weights_, *made.executor));
  RM_RETURN_IF_ERROR(nn::BindStates(model, states_, *made.executor));
  return &prepared_.emplace(samples, std::move(made)).first->second;
}

absl::StatusOr<Evaluator::Sums> Evaluator::RunBlock(data::RowRange rows) {
  RM_ASSIGN_OR_RETURN(Prepared * prepared, PreparedFor(rows.size()));
  std::vector<uint32_t> samples(static_cast<size_t>(rows.size()));
  std::iota(samples.begin(), samples.end(), static_cast<uint32_t>(rows.begin));
  RM_RETURN_IF_ERROR(workload_.held_out().Fill(samples, prepared->inputs, prepared->labels));
  RM_RETURN_IF_ERROR(prepared->executor->Run({}));
  RM_ASSIGN_OR_RETURN(const tensor::Tensor loss, prepared->executor->Output(nn::kLossSum));
  RM_ASSIGN_OR_RETURN(const tensor::Tensor correct, prepared->executor->Output(nn::kCorrect));
  return Sums{loss.data<float>()[0], correct.data<float>()[0]};
}

absl::StatusOr<Evaluation> Evaluator::Run(collectives::Communicator& communicator) {
  const int64_t samples = workload_.held_out().size();
  if (samples == 0) return Evaluation{};
  const auto blocks = static_cast<int>((samples + kBlockSamples - 1) / kBlockSamples);
  collectives::OrderedSum<double> sum(blocks, 2);
  const auto mine = BlocksOf(blocks, communicator.world(), communicator.rank());
  for (int block = mine.begin; block < mine.end; ++block) {
    const int64_t begin = block * kBlockSamples;
    RM_ASSIGN_OR_RETURN(const Sums sums,
                        RunBlock({begin, std::min(begin + kBlockSamples, samples)}));
    RM_RETURN_IF_ERROR(sum.Add(block, std::array{sums.loss, sums.correct}));
  }
  std::array<double, 2> total{};
  RM_RETURN_IF_ERROR(sum.Reduce(communicator, total, "evaluation"));
  const double labels =
      static_cast<double>(samples) * static_cast<double>(workload_.held_out().format().labels());
  return Evaluation{.loss = total[0] / labels, .accuracy = total[1] / labels};
}

}  // namespace ringmaster::train
