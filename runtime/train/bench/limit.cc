#include "runtime/train/bench/limit.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"
#include "common/text.h"
#include "runtime/device/available_memory.h"
#include "runtime/device/threads.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/op_definition.h"
#include "runtime/kernels/ideal.h"
#include "runtime/tensor/tensor.h"
#include "runtime/train/bench/catalogue.h"
#include "runtime/train/bench/measure.h"

namespace ringmaster::train::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
using tensor::Tensor;
using tensor::ValueSpec;

constexpr size_t kRuns = 5;
constexpr size_t kFewestRuns = 2;
constexpr double kLong = 1;  // seconds of runs after which no more than the fewest are needed

// A node and how often the step has one like it.
struct Kind {
  const graph::Node* node;
  std::vector<ValueSpec> inputs, outputs;
  int64_t count = 0;

  kernels::NodeSpec spec() const { return {node->op->type, node->attributes, inputs, outputs}; }
};

std::string ShapesOf(const Kind& kind) {
  std::string text;
  for (const ValueSpec& input : kind.inputs)
    text += (text.empty() ? "" : " x ") + input.shape.ToString();
  return text + " -> " + kind.outputs[0].shape.ToString();
}

// The kinds of nodes by what tells them apart.
std::map<std::string, Kind> KindsOf(const graph::Graph& graph) {
  std::map<std::string, Kind> kinds;
  for (const graph::Node& node : graph.nodes()) {
    Kind kind{&node, graph.specs(node.inputs), graph.specs(node.outputs)};
    const std::string key =
        fmt::format("{} {} {}", node.op->type, node.attributes.ToString(), ShapesOf(kind));
    ++kinds.try_emplace(key, std::move(kind)).first->second.count;
  }
  return kinds;
}

// Memory that has been written, so that each page of it is one of its own.
std::vector<Tensor> Written(const std::vector<ValueSpec>& specs) {
  std::vector<Tensor> tensors;
  for (const ValueSpec& spec : specs)
    std::ranges::fill(tensors.emplace_back(spec.shape, spec.dtype).span<float>(), 1.0F);
  return tensors;
}

// The median of a few runs, after one more.
double SecondsOf(const Kind& kind, kernels::Primitive& primitive) {
  std::vector<Tensor> inputs = Written(kind.inputs), outputs = Written(kind.outputs);
  const auto floats = static_cast<int64_t>(primitive.scratch_bytes() / sizeof(float));
  std::vector<Tensor> scratch = Written({ValueSpec{{floats + 1}, tensor::DType::kF32}});
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const Tensor& tensor : inputs) in.push_back(tensor.raw());
  for (Tensor& tensor : outputs) out.push_back(tensor.raw());
  const auto run = [&] {
    const auto begin = SteadyClock::now();
    primitive.Run({in.data(), out.data(), scratch.front().raw(), nullptr});
    return std::chrono::duration<double>(SteadyClock::now() - begin).count();
  };
  run();
  std::vector<double> times;
  double sum = 0;
  while (times.size() < kFewestRuns || (times.size() < kRuns && sum < kLong))
    sum += times.emplace_back(run());
  return Median(std::move(times));
}

absl::Status CheckMemory(const Kind& kind, size_t scratch_bytes,
                         const std::optional<int64_t>& available) {
  size_t bytes = scratch_bytes;
  for (const auto* specs : {&kind.inputs, &kind.outputs})
    for (const ValueSpec& spec : *specs) bytes += spec.bytes();
  if (!available || bytes <= static_cast<size_t>(*available)) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format(
      "{} alone, {}, needs {} of memory, {} are available; ask for a smaller batch (--batch)",
      kind.node->op->type, ShapesOf(kind), WithUnit(bytes),
      WithUnit(static_cast<size_t>(*available))));
}

bool IsArithmetic(std::string_view op) {
  return op.starts_with("conv2d") || op == "linear" || op == "matmul";
}

struct Timed {
  Kind kind;
  std::unique_ptr<kernels::Primitive> primitive;
};

// All that is timed, made ready before any of it is, so that what does not fit is refused at once.
absl::StatusOr<std::vector<Timed>> PrepareAll(const graph::Graph& graph) {
  const std::optional<int64_t> available = device::AvailableMemory();
  std::vector<Timed> all;
  for (auto& [key, kind] : KindsOf(graph)) {
    if (!IsArithmetic(kind.node->op->type)) continue;
    // Of what is too large oneDNN is not asked.
    RM_RETURN_IF_ERROR(CheckMemory(kind, 0, available));
    auto primitive = kernels::PrepareIdeal(kind.spec());
    if (primitive == nullptr) return absl::UnimplementedError("oneDNN does not take " + key);
    RM_RETURN_IF_ERROR(CheckMemory(kind, primitive->scratch_bytes(), available));
    all.push_back({kind, std::move(primitive)});
  }
  return all;
}

}  // namespace

absl::StatusOr<Limit> MeasureLimit(const Options& options) {
  RM_RETURN_IF_ERROR(device::SetThreadCount(options.threads));
  RM_ASSIGN_OR_RETURN(const Subject subject, MakeSubject(options));
  RM_ASSIGN_OR_RETURN(const nn::Model model, BuildSubject(subject, options.batch));
  RM_ASSIGN_OR_RETURN(const std::vector<Timed> all, PrepareAll(model.graph));
  Limit limit;
  for (const auto& [kind, primitive] : all) {
    const double seconds = SecondsOf(kind, *primitive);
    limit.step_seconds += static_cast<double>(kind.count) * seconds;
    limit.parts.push_back({.op = std::string(kind.node->op->type),
                           .shapes = ShapesOf(kind),
                           .implementation = primitive->name(),
                           .count = kind.count,
                           .seconds = seconds});
  }
  if (limit.parts.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{} has neither convolutions nor matrix products", options.model));
  }
  limit.samples_per_second = static_cast<double>(options.batch) / limit.step_seconds;
  std::ranges::stable_sort(limit.parts, std::ranges::greater(), [](const LimitPart& part) {
    return static_cast<double>(part.count) * part.seconds;
  });
  return limit;
}

}  // namespace ringmaster::train::bench
