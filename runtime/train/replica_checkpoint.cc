// A replica's way into a checkpoint and back.
//
// Parameters and running statistics keep their names, as other tools expect ("conv1.weight"); the
// optimizer's memory is "optimizer.<buffer>.<parameter>"; counters are text in the metadata.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"
#include "runtime/data/sample_stream.h"
#include "runtime/train/replica.h"

namespace ringmaster::train {
namespace {

using checkpoint::Metadata;
using checkpoint::TensorView;

constexpr char kStep[] = "ringmaster.step";
constexpr char kLoss[] = "ringmaster.loss";
constexpr char kAccuracy[] = "ringmaster.accuracy";
constexpr char kSkipped[] = "ringmaster.skipped_steps";
constexpr char kLedger[] = "ringmaster.sample_ledger";
constexpr char kPosition[] = "ringmaster.next_position";
constexpr char kData[] = "ringmaster.data";
constexpr char kSeed[] = "ringmaster.seed";

template <typename Entry>
TensorView ViewOf(const Entry& entry, const std::string& name, std::span<const float> flat) {
  const auto dims = entry.shape.dims();
  return {.name = name,
          .shape = {dims.begin(), dims.end()},
          .data = std::as_bytes(
              flat.subspan(entry.offset, static_cast<size_t>(entry.shape.elements())))};
}

std::string Text(const Metadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : found->second;
}

template <typename T>
absl::StatusOr<T> Number(const Metadata& metadata, const char* key) {
  const std::string text = Text(metadata, key);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return absl::DataLossError(fmt::format("its {} is '{}'", key, text));
  }
  return value;
}

absl::Status Differs(const std::string& what) {
  return absl::FailedPreconditionError("it was written for " + what);
}

// Every tensor that is wanted, or what is wrong with the first that does not fit.
absl::StatusOr<std::vector<const TensorView*>> FindAll(const checkpoint::Checkpoint& checkpoint,
                                                       std::span<const TensorView> wanted) {
  std::vector<const TensorView*> found;
  for (const TensorView& tensor : wanted) {
    const TensorView* its = checkpoint.Find(tensor.name);
    if (its == nullptr) return Differs("a network or optimizer without " + tensor.name);
    if (its->dtype != tensor.dtype || its->shape != tensor.shape) {
      return Differs(fmt::format("a network whose {} has another shape", tensor.name));
    }
    found.push_back(its);
  }
  return found;
}

}  // namespace

std::vector<TensorView> Replica::Tensors() {
  const nn::Model& layout = workload_->layout();
  std::vector<TensorView> tensors;
  for (const nn::Parameter& parameter : layout.parameters) {
    tensors.push_back(ViewOf(parameter, parameter.name, weights_.span()));
  }
  for (const nn::State& state : layout.states) {
    tensors.push_back(ViewOf(state, state.name, states_.span()));
  }
  for (const optim::StateBuffer& buffer : optimizer_->state()) {
    for (const nn::Parameter& parameter : layout.parameters) {
      tensors.push_back(ViewOf(
          parameter, fmt::format("optimizer.{}.{}", buffer.name, parameter.name), buffer.values));
    }
  }
  return tensors;
}

Metadata Replica::Counters() const {
  return {{kStep, fmt::format("{}", step_)},
          {kLoss, fmt::format("{}", loss_)},
          {kAccuracy, fmt::format("{}", accuracy_)},
          {kSkipped, fmt::format("{}", skipped_steps_)},
          {kLedger, ledger_.digest()},
          {kPosition, fmt::format("{}", ledger_.next_position())},
          {kData, workload_->data_fingerprint()},
          {kSeed, fmt::format("{}", workload_->seed())}};
}

absl::Status Replica::Restore(const checkpoint::Checkpoint& checkpoint) {
  const Metadata& metadata = checkpoint.metadata();
  RM_ASSIGN_OR_RETURN(const auto step, Number<uint64_t>(metadata, kStep));
  RM_ASSIGN_OR_RETURN(const auto loss, Number<double>(metadata, kLoss));
  RM_ASSIGN_OR_RETURN(const auto accuracy, Number<double>(metadata, kAccuracy));
  RM_ASSIGN_OR_RETURN(const auto skipped, Number<uint64_t>(metadata, kSkipped));
  RM_ASSIGN_OR_RETURN(const auto seed, Number<uint64_t>(metadata, kSeed));
  RM_ASSIGN_OR_RETURN(const auto position, Number<uint64_t>(metadata, kPosition));
  if (Text(metadata, kData) != workload_->data_fingerprint()) return Differs("other data");
  if (seed != workload_->seed()) return Differs(fmt::format("seed {}", seed));
  if (position != data::FirstPosition(step, workload_->batch())) {
    return Differs("another batch size");
  }
  const std::vector<TensorView> mine = Tensors();
  RM_ASSIGN_OR_RETURN(const std::vector<const TensorView*> found, FindAll(checkpoint, mine));
  data::SampleLedger ledger = ledger_;
  RM_RETURN_IF_ERROR(ledger.Restore(position, Text(metadata, kLedger)));
  // From here on nothing fails. The views are of this object's own, mutable memory.
  for (size_t i = 0; i < mine.size(); ++i) {
    std::memcpy(const_cast<std::byte*>(mine[i].data.data()), found[i]->data.data(),
                mine[i].data.size());
  }
  ledger_ = ledger;
  step_ = step;
  loss_ = loss;
  accuracy_ = accuracy;
  skipped_steps_ = skipped;
  return absl::OkStatus();
}

}  // namespace ringmaster::train
