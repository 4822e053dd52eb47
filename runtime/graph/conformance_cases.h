// The one list of cases that every op is checked with (after ggml's tests/test-backend-ops.cpp).
//
// To cover an op, add a case to the file of its kind in graph/cases/: a function that builds a
// small graph around the op and returns its result, and its line in that file's list.
// op_gradient_test.cc then checks, for every case, gradients against finite differences in double;
// op_conformance_test.cc every kernel in f32 against the reference in double, and the same bits in
// every run, with and without shared memory, with and without passes.
#ifndef RINGMASTER_RUNTIME_GRAPH_CONFORMANCE_CASES_H_
#define RINGMASTER_RUNTIME_GRAPH_CONFORMANCE_CASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/ops.h"
#include "runtime/tensor/tensor.h"

namespace ringmaster::graph {

// The tensors of a case, filled from a fixed seed, in the element type that the check at hand
// wants.
class CaseBuilder {
 public:
  explicit CaseBuilder(DType dtype) : dtype_(dtype) {}

  Graph& graph() { return graph_; }
  DType dtype() const { return dtype_; }

  // A differentiable tensor of values in [-1, 1), at least 0.05 away from 0 so that no difference
  // quotient steps over a kink there.
  ValueId Var(const Shape& shape);
  // A differentiable tensor whose values are all at least 0.1 apart, for ops that compare.
  ValueId Distinct(const Shape& shape);
  // Like Var but positive, and not differentiated: a variance, say.
  ValueId Positive(const Shape& shape);
  // Like Var, not differentiated.
  ValueId Fixed(const Shape& shape);
  // i32 in [0, bound).
  ValueId Indices(const Shape& shape, int32_t bound);

  struct Source {
    ValueId id;
    tensor::Tensor tensor;
    bool differentiate;
  };
  std::vector<Source>& sources() { return sources_; }

 private:
  template <typename Draw>
  ValueId Add(const Shape& shape, bool differentiate, const Draw& draw);

  DType dtype_;
  Graph graph_;
  std::vector<Source> sources_;
};

struct Case {
  std::string name;
  ValueId (*build)(CaseBuilder& b);
  // Large enough for a matrix unit. It takes so long in double that few of its gradients are
  // checked numerically, and its loss has so many terms that it is compared beside these.
  bool is_large = false;
};

// How many samples (extents of the first axis) the cases that draw random numbers have.
inline constexpr int64_t kCaseSamples = 6;

const std::vector<Case>& ConformanceCases();

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_CONFORMANCE_CASES_H_
