#include "runtime/graph/passes/passes.h"

namespace ringmaster::graph {

Graph Optimise(const Graph& graph, const CompileOptions& options) {
  Graph now = graph;
  if (options.optimise) {
    now = FoldConstants(now, options.kernels);
    now = Simplify(now);
    now = MergeEqualNodes(now);
    now = DelayPoolGrads(now);
    now = FuseRelu(now);
    now = FuseGelu(now);
  }
  if (options.kernels == kernels::Selection::kReference) return now;
  now = ChooseLayouts(now, options.images, options.kernels);
  return options.optimise ? FuseResidualGrad(now, options.kernels) : now;
}

}  // namespace ringmaster::graph
