// A case of conformance_cases.h made ready to run: its result, a scalar that weighs every element
// of the result differently (so that no gradient vanishes by symmetry), and that scalar's
// gradients.
//
// Failures to build or compile are failures of the running test. Not thread-safe.
#ifndef RINGMASTER_RUNTIME_GRAPH_TESTING_COMPILED_CASE_H_
#define RINGMASTER_RUNTIME_GRAPH_TESTING_COMPILED_CASE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/graph/conformance_cases.h"
#include "runtime/graph/executor.h"

namespace ringmaster::graph {

class CompiledCase {
 public:
  // Sets the number of threads of this process.
  CompiledCase(const Case& c, DType dtype, const CompileOptions& options, int threads = 2);

  // Outputs are "y", "loss", GradientName of each differentiated source, and "dropout.<node>" of
  // each node that draws random numbers: what others need to compute the same.
  void Run();
  double Loss();
  std::vector<std::string> OutputNames() const;
  tensor::Tensor Output(const std::string& name) { return *executor_->Output(name); }
  std::string GradientName(ValueId id) const { return "grad." + graph().value(id).name; }

  // With what makes loss and gradients of it. The case's own nodes are the first `own_nodes`, and
  // its last source weighs the elements of "y".
  const Graph& graph() const { return graph_; }
  std::size_t own_nodes() const { return own_nodes_; }
  ValueId y() const { return y_; }
  std::vector<CaseBuilder::Source>& sources() { return builder_.sources(); }
  Executor& executor() { return *executor_; }

  static double At(const tensor::Tensor& t, int64_t i);

 private:
  CaseBuilder builder_;
  const Graph& graph_;
  std::size_t own_nodes_ = 0;
  ValueId y_;
  std::unique_ptr<Executor> executor_;
  std::vector<uint64_t> positions_;
};

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_TESTING_COMPILED_CASE_H_
