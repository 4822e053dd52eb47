#include "runtime/graph/in_place.h"

#include <algorithm>
#include <utility>

namespace ringmaster::graph {
namespace {

class Sharing {
 public:
  Sharing(const Graph& graph, std::span<const PlannedStep> steps, std::vector<int32_t> roots)
      : graph_(graph),
        steps_(steps),
        roots_(std::move(roots)),
        last_reader_(roots_.size(), kNobody),
        stays_(roots_.size(), false),
        is_output_(roots_.size(), false) {
    for (size_t v = 0; v < roots_.size(); ++v)
      stays_[v] = graph_.values()[v].kind != ValueKind::kComputed;
    for (const NamedValue& output : graph_.outputs()) {
      is_output_[static_cast<size_t>(output.value.index)] = true;
      stays_[static_cast<size_t>(output.value.index)] = true;
    }
    for (size_t s = 0; s < steps_.size(); ++s) {
      for (const ValueId input : NodeOf(s).inputs) last_reader_[RootOf(input)] = Number(s);
    }
  }

  std::vector<int32_t> Share() && {
    for (size_t s = 0; s < steps_.size(); ++s) {
      const Node& node = NodeOf(s);
      for (size_t o = 0; o < node.outputs.size(); ++o) {
        for (size_t i = 0; i < node.inputs.size(); ++i) {
          if (!MayTake(s, i, o)) continue;
          Join(s, node.inputs[i], node.outputs[o]);
          break;
        }
      }
    }
    return std::move(roots_);
  }

 private:
  static constexpr int32_t kNobody = -1;
  static int32_t Number(size_t step) { return static_cast<int32_t>(step); }

  const Node& NodeOf(size_t step) const { return graph_.node(steps_[step].node); }
  size_t RootOf(ValueId value) const {
    return static_cast<size_t>(roots_[static_cast<size_t>(value.index)]);
  }

  // Whether that output of the step may lie where that input does.
  bool MayTake(size_t step, size_t input, size_t output) const {
    const Node& node = NodeOf(step);
    const size_t root = RootOf(node.inputs[input]);
    if (stays_[root] || last_reader_[root] != Number(step)) return false;
    if (!(graph_.spec(node.inputs[input]) == graph_.spec(node.outputs[output]))) return false;
    // As whatever else the operand is read.
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (RootOf(node.inputs[i]) == root &&
          !steps_[step].primitive->MayOverwrite(static_cast<int>(i), static_cast<int>(output)))
        return false;
    }
    return true;
  }

  void Join(size_t step, ValueId operand, ValueId result) {
    const size_t from = RootOf(operand), to = RootOf(result);
    const bool into_output = is_output_[to];
    const size_t kept = into_output ? to : from, gone = into_output ? from : to;
    std::ranges::replace(roots_, static_cast<int32_t>(gone), static_cast<int32_t>(kept));
    // Even if nobody reads the result: another one of this step must not lie there, too.
    last_reader_[kept] = std::max(last_reader_[to], Number(step) + 1);
  }

  const Graph& graph_;
  const std::span<const PlannedStep> steps_;
  std::vector<int32_t> roots_;        // by value
  std::vector<int32_t> last_reader_;  // by root: a step
  std::vector<bool> stays_;           // by root: whether its memory may not be overwritten
  std::vector<bool> is_output_;       // by root
};

}  // namespace

std::vector<int32_t> ShareInPlace(const Graph& graph, std::span<const PlannedStep> steps,
                                  std::vector<int32_t> roots) {
  return Sharing(graph, steps, std::move(roots)).Share();
}

}  // namespace ringmaster::graph
