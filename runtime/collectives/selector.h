// Which algorithm an operation takes: the forced one, or what the cost model predicts to be the
// fastest.
//
// The predictions are worked out once, for sizes of 1, 2, 4, ... bytes; an operation looks its
// choice up by the largest of them that it reaches. Ranks whose selectors were made of the same
// numbers choose alike, which they must.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_SELECTOR_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_SELECTOR_H_

#include <array>
#include <cstddef>
#include <limits>

#include "runtime/collectives/algorithm.h"
#include "runtime/collectives/cost_model.h"
#include "runtime/collectives/node_map.h"

namespace ringmaster::collectives {

class Accelerator;

// How one operation is done. `nodes` belongs to the selector; where there is an accelerator it does
// the whole of it, and the rest says nothing.
struct Method {
  Algorithm algorithm = Algorithm::kAuto;
  Algorithm between = Algorithm::kAuto;  // two-level allreduce: the algorithm between the nodes
  size_t segment_bytes = 0;
  const NodeMap* nodes = nullptr;
  Accelerator* accelerator = nullptr;
  size_t direct_piece_bytes = 0;  // segment_bytes, or less
};

class Selector {
 public:
  // `forced`: what every operation that has it takes; kAuto forces nothing.
  Selector(NodeMap nodes, const CostModel& model, size_t segment_bytes, Algorithm forced);

  // The method for an operation of `bytes`: of the whole array, in the type that the caller has.
  // For an operation with one way only, Algorithm::kAuto.
  Method For(OperationKind kind, size_t bytes) const;

  const CostModel& model() const { return model_; }
  const NodeMap& nodes() const { return nodes_; }
  Algorithm forced() const { return forced_; }
  size_t segment_bytes() const { return segment_bytes_; }
  size_t direct_piece_bytes() const {
    return DirectPieceBytes(model_, nodes_.shape(), segment_bytes_);
  }

 private:
  static constexpr size_t kSizes = std::numeric_limits<size_t>::digits + 1;
  struct Choice {
    Algorithm algorithm = Algorithm::kAuto;
    Algorithm between = Algorithm::kAuto;
  };
  Choice Best(OperationKind kind, size_t bytes) const;

  NodeMap nodes_;
  CostModel model_;
  size_t segment_bytes_;
  Algorithm forced_;
  std::array<std::array<Choice, kSizes>, kOperationKinds> table_;  // by kind, then bit width
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_SELECTOR_H_
