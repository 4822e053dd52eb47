#include "runtime/train/evaluator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/check.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/metric.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/data/sample_check.h"
#include "runtime/nn/binding.h"
#include "runtime/train/measures.h"

namespace ringmaster::train {
namespace {

// What is gathered of a label: its score, and whether it holds.
constexpr size_t kGathered = 2;
// What is added up.
constexpr size_t kSums = 3;

int BlocksOf(int64_t samples) {
  return static_cast<int>((samples + kEvaluationBlock - 1) / kEvaluationBlock);
}

// The blocks of `rank`; none for ranks beyond the number of blocks.
collectives::ShardRange OwnedBlocks(int blocks, int world, int rank) {
  const int sharing = std::min(blocks, world);
  if (rank >= sharing) return {};
  return collectives::OwnedShards(blocks, sharing, rank);
}

bool HasTop5(const data::SampleFormat& format) {
  return !format.has_independent_labels() &&
         format.classes >= training::v1alpha1::kFewestClassesForTop5;
}

bool HasPerplexity(const Workload& workload) {
  return workload.config().data.text &&
         workload.config().loss != training::v1alpha1::LossFunction::kMeanSquare;
}

bool HasAuroc(const data::SampleFormat& format) {
  return format.has_independent_labels() || (format.classes == 2 && format.labels() == 1);
}

}  // namespace

Measured MeasuredOf(const Workload& workload) {
  const data::SampleFormat& format = workload.held_out().format();
  return {
      .top5 = HasTop5(format), .perplexity = HasPerplexity(workload), .auroc = HasAuroc(format)};
}

absl::Status CheckMetric(const Workload& workload) {
  using training::v1alpha1::Metric;
  const data::SampleFormat& format = workload.held_out().format();
  switch (training::v1alpha1::MetricOf(workload.config().evaluation)) {
    case Metric::kTop5:
      if (HasTop5(format)) return absl::OkStatus();
      return absl::InvalidArgumentError(fmt::format(
          "spec.trainer.evaluation.metric: Top5 needs at least {} classes, the data has "
          "{}; take Accuracy or Loss",
          training::v1alpha1::kFewestClassesForTop5,
          format.has_independent_labels() ? "independent labels"
                                          : fmt::format("{}", format.classes)));
    case Metric::kPerplexity:
      if (HasPerplexity(workload)) return absl::OkStatus();
      return absl::InvalidArgumentError(
          "spec.trainer.evaluation.metric: Perplexity is measured on text alone, and not with "
          "MeanSquare; take Loss");
    case Metric::kAuroc:
      if (HasAuroc(format)) return absl::OkStatus();
      return absl::InvalidArgumentError(
          fmt::format("spec.trainer.evaluation.metric: AUROC needs samples of 2 classes or of "
                      "independent labels, the data has {} classes and {} labels a sample; take "
                      "Accuracy or Loss",
                      format.classes, format.labels()));
    case Metric::kUnspecified:
    case Metric::kLoss:
    case Metric::kAccuracy:
      break;
  }
  return absl::OkStatus();
}

Evaluator::Evaluator(const Workload& workload, kernels::Selection kernels, std::span<float> weights,
                     std::span<float> states)
    : workload_(workload),
      kernels_(kernels),
      weights_(weights),
      states_(states),
      has_top5_(HasTop5(workload.held_out().format())),
      has_auroc_(HasAuroc(workload.held_out().format())),
      arena_(std::make_shared<device::Buffer>()) {}

size_t Evaluator::bytes(const collectives::Communicator& communicator) const {
  const collectives::ShardRange own =
      OwnedBlocks(BlocksOf(workload_.held_out().size()), communicator.world(), communicator.rank());
  return own.begin == own.end ? 0 : workload_.evaluation_bytes();
}

void Evaluator::Release() {
  prepared_.clear();
  *arena_ = {};
}

absl::StatusOr<Evaluator::Prepared*> Evaluator::PreparedFor(int64_t samples) {
  if (const auto found = prepared_.find(samples); found != prepared_.end()) return &found->second;
  RM_ASSIGN_OR_RETURN(const nn::Model model, workload_.Build(nn::Mode::kEvaluation, samples));
  Prepared made;
  RM_ASSIGN_OR_RETURN(
      made.executor, graph::Executor::Compile(model.graph, {.kernels = kernels_, .arena = arena_}));
  made.inputs = tensor::Tensor(model.inputs.shape, model.inputs.dtype);
  made.labels = tensor::Tensor(model.labels.shape, model.labels.dtype);
  RM_RETURN_IF_ERROR(made.executor->Bind(nn::kInputs, made.inputs));
  RM_RETURN_IF_ERROR(made.executor->Bind(nn::kLabels, made.labels));
  RM_RETURN_IF_ERROR(nn::BindParameters(model, weights_, *made.executor));
  RM_RETURN_IF_ERROR(nn::BindStates(model, states_, *made.executor));
  return &prepared_.emplace(samples, std::move(made)).first->second;
}

absl::StatusOr<Evaluator::Sums> Evaluator::RunBlock(data::RowRange rows) {
  Sums sums;
  const int64_t pass = workload_.evaluated_at_once();
  RM_CHECK(pass > 0, "the workload's model has been checked");
  for (int64_t begin = rows.begin; begin < rows.end; begin += pass) {
    RM_ASSIGN_OR_RETURN(const Sums own, RunPass({begin, std::min(begin + pass, rows.end)}));
    sums.loss += own.loss;
    sums.correct += own.correct;
    sums.in_top5 += own.in_top5;
  }
  return sums;
}

absl::StatusOr<Evaluator::Sums> Evaluator::RunPass(data::RowRange rows) {
  RM_ASSIGN_OR_RETURN(Prepared * prepared, PreparedFor(rows.size()));
  std::vector<uint32_t> samples(static_cast<size_t>(rows.size()));
  std::iota(samples.begin(), samples.end(), static_cast<uint32_t>(rows.begin));
  const data::Dataset& held_out = workload_.held_out();
  RM_RETURN_IF_ERROR(held_out.Fill(samples, prepared->inputs, prepared->labels));
  // Of a data set that brings its own fingerprint nobody has looked at them.
  const std::span<const int32_t> labels = prepared->labels.span<int32_t>();
  if (const absl::Status right = data::CheckLabels(held_out.format(), samples, labels); !right.ok())
    return absl::InvalidArgumentError("the data is wrong in held-out " + Message(right));
  RM_RETURN_IF_ERROR(prepared->executor->Run({}));
  RM_ASSIGN_OR_RETURN(const tensor::Tensor loss, prepared->executor->Output(nn::kLossSum));
  RM_ASSIGN_OR_RETURN(const tensor::Tensor correct, prepared->executor->Output(nn::kCorrect));
  Sums sums{.loss = loss.data<float>()[0], .correct = correct.data<float>()[0]};
  if (!has_top5_ && !has_auroc_ && !listener_) return sums;
  RM_ASSIGN_OR_RETURN(const tensor::Tensor logits, prepared->executor->Output(nn::kLogits));
  if (has_top5_) {
    const int64_t classes = held_out.format().classes;
    sums.in_top5 = static_cast<double>(CountInTop(5, logits.span<float>(), classes, labels));
  }
  if (has_auroc_) AddScores(logits.span<float>(), labels);
  if (listener_) listener_(rows, logits.span<float>(), labels);
  return sums;
}

// Logits order the samples as probabilities do; of two classes the difference of the two does.
void Evaluator::AddScores(std::span<const float> logits, std::span<const int32_t> labels) {
  const bool independent = workload_.held_out().format().has_independent_labels();
  for (size_t i = 0; i < labels.size(); ++i) {
    scores_.push_back(independent ? static_cast<double>(logits[i])
                                  : static_cast<double>(logits[2 * i + 1]) -
                                        static_cast<double>(logits[2 * i]));
    scores_.push_back(labels[i]);
  }
}

std::vector<size_t> Evaluator::ScoresByRank(int world) const {
  const int64_t samples = workload_.held_out().size();
  std::vector<size_t> counts;
  for (int rank = 0; rank < world; ++rank) {
    const auto blocks = OwnedBlocks(BlocksOf(samples), world, rank);
    const int64_t begin = std::min(blocks.begin * kEvaluationBlock, samples);
    const int64_t end = std::min(blocks.end * kEvaluationBlock, samples);
    const int64_t labels = (end - begin) * workload_.held_out().format().labels();
    counts.push_back(kGathered * static_cast<size_t>(labels));
  }
  return counts;
}

absl::Status Evaluator::MeasureAuroc(collectives::Communicator& communicator, Evaluation& result) {
  const std::vector<size_t> counts = ScoresByRank(communicator.world());
  std::vector<double> all(std::accumulate(counts.begin(), counts.end(), size_t{0}));
  RM_RETURN_IF_ERROR(communicator.Allgather(scores_, counts, all, "evaluation scores"));
  const data::SampleFormat& format = workload_.held_out().format();
  Aurocs found = AurocsOf(all, static_cast<size_t>(format.labels()));
  result.auroc = found.mean;
  if (format.has_independent_labels()) result.label_aurocs = std::move(found.each);
  return absl::OkStatus();
}

absl::Status Evaluator::Compute(const collectives::Communicator& communicator) {
  const int64_t samples = workload_.held_out().size();
  if (samples == 0) return absl::OkStatus();
  const int blocks = BlocksOf(samples);
  sum_.emplace(blocks, kSums);
  scores_.clear();
  const auto mine = OwnedBlocks(blocks, communicator.world(), communicator.rank());
  for (int block = mine.begin; block < mine.end; ++block) {
    const int64_t begin = block * kEvaluationBlock;
    RM_ASSIGN_OR_RETURN(const Sums sums,
                        RunBlock({begin, std::min(begin + kEvaluationBlock, samples)}));
    RM_RETURN_IF_ERROR(
        sum_->Add(block, std::array<double, kSums>{sums.loss, sums.correct, sums.in_top5}));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Evaluation>> Evaluator::Reduce(
    int64_t step, collectives::Communicator& communicator) {
  const int64_t samples = workload_.held_out().size();
  if (samples == 0) return std::nullopt;
  RM_CHECK(sum_.has_value(), "what is reduced has been computed");
  std::array<double, kSums> total{};
  RM_RETURN_IF_ERROR(sum_->Reduce(communicator, total, "evaluation"));
  const double labels =
      static_cast<double>(samples) * static_cast<double>(workload_.held_out().format().labels());
  Evaluation result{.step = step, .loss = total[0] / labels, .accuracy = total[1] / labels};
  if (has_top5_) result.top5_accuracy = total[2] / labels;
  if (HasPerplexity(workload_)) {
    // The last bit of an exponential may be the processor's own, and all ranks go by it.
    double perplexity = std::exp(result.loss);
    RM_RETURN_IF_ERROR(communicator.Broadcast(0, {&perplexity, 1}, "perplexity"));
    result.perplexity = perplexity;
  }
  if (has_auroc_) RM_RETURN_IF_ERROR(MeasureAuroc(communicator, result));
  return result;
}

}  // namespace ringmaster::train
