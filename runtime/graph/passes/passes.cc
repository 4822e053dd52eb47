#include "runtime/graph/passes/passes.h"

#include <utility>

namespace ringmaster::graph {

Graph Optimise(const Graph& graph, const CompileOptions& options, const PassObserver& observer) {
  Graph now = graph;
  const auto take = [&](std::string_view pass, Graph made) {
    now = std::move(made);
    if (observer) observer(pass, now);
  };
  if (options.optimise) {
    take("FoldConstants", FoldConstants(now, options.kernels));
    take("Simplify", Simplify(now));
    take("MergeEqualNodes", MergeEqualNodes(now));
    take("DelayPoolGrads", DelayPoolGrads(now));
    take("FuseRelu", FuseRelu(now));
    take("FuseActivation", FuseActivation(now));
  }
  if (options.kernels == kernels::Selection::kReference) return now;
  take("ChooseLayouts", ChooseLayouts(now, options.images, options.kernels));
  if (options.optimise) {
    take("FuseResidualGrad", FuseResidualGrad(now, options.kernels));
    take("FuseReluGrad", FuseReluGrad(now, options.kernels));
    take("FuseConvNorm", FuseConvNorm(now, options.kernels));
    take("FuseNormMaxPool", FuseNormMaxPool(now, options.kernels));
    take("KeepTaps", KeepTaps(now, options.kernels));
    take("FuseMaxPool", FuseMaxPool(now, options.kernels));
  }
  return now;
}

}  // namespace ringmaster::graph
