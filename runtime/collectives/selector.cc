#include "runtime/collectives/selector.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace ringmaster::collectives {

namespace {

// The first of Rank's, but without a list: a communicator asks for every size as it is made.
Algorithm Fastest(const CostModel& model, OperationKind kind, size_t bytes, Shape shape,
                  size_t segment_bytes) {
  const auto all = AlgorithmsOf(kind);
  const auto seconds = [&](Algorithm algorithm) {
    return Predict(model, kind, algorithm, bytes, shape, segment_bytes);
  };
  return *std::ranges::min_element(all, {}, seconds);
}

}  // namespace

Selector::Selector(NodeMap nodes, const CostModel& model, size_t segment_bytes, Algorithm forced)
    : nodes_(std::move(nodes)), model_(model), segment_bytes_(segment_bytes), forced_(forced) {
  for (size_t kind = 0; kind < kOperationKinds; ++kind) {
    for (size_t width = 0; width < kSizes; ++width) {
      const size_t bytes = width == 0 ? 0 : size_t{1} << (width - 1);
      table_[kind][width] = Best(static_cast<OperationKind>(kind), bytes);
    }
  }
}

Selector::Choice Selector::Best(OperationKind kind, size_t bytes) const {
  const auto all = AlgorithmsOf(kind);
  if (all.empty()) return {};
  Choice choice{forced_, Algorithm::kAuto};
  if (std::find(all.begin(), all.end(), forced_) == all.end())
    choice.algorithm = Fastest(model_, kind, bytes, nodes_.shape(), segment_bytes());
  if (kind == OperationKind::kAllreduce && choice.algorithm == Algorithm::kTwoLevel)
    choice.between = BetweenNodes(model_, bytes, nodes_.shape(), segment_bytes()).algorithm;
  return choice;
}

Method Selector::For(OperationKind kind, size_t bytes) const {
  const Choice& choice = table_[static_cast<size_t>(kind)][std::bit_width(bytes)];
  return {.algorithm = choice.algorithm,
          .between = choice.between,
          .segment_bytes = segment_bytes_,
          .nodes = &nodes_,
          .direct_piece_bytes = direct_piece_bytes()};
}

}  // namespace ringmaster::collectives
