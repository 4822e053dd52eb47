// What the tests of several passes share: graphs, and what is asked of them.
#ifndef RINGMASTER_RUNTIME_GRAPH_PASSES_TESTING_H_
#define RINGMASTER_RUNTIME_GRAPH_PASSES_TESTING_H_

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/graph/autodiff.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/op_definition.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes/passes.h"

namespace ringmaster::graph {

inline constexpr Conv2dOptions kSame{{1, 1}, {1, 1}};

// How many nodes there are of each op.
inline std::map<std::string, int> OpsOf(const Graph& graph) {
  std::map<std::string, int> ops;
  for (const Node& node : graph.nodes()) ++ops[std::string(node.op->type)];
  return ops;
}

// Without what no output needs any more.
inline Graph Swept(const Graph& graph) {
  return MergeEqualNodes(graph);
}

// batch_norm of x with parameters of its own.
inline ValueId Norm(Graph& g, ValueId x, const std::string& name) {
  const Shape channels = {g.shape(x).dim(1)};
  const ValueId gamma = g.Parameter(name + ".gamma", channels, DType::kF32);
  const ValueId beta = g.Parameter(name + ".beta", channels, DType::kF32);
  return BatchNorm(g, x, gamma, beta, 1e-5, name).y;
}

// Marks the gradients by all parameters as outputs.
inline void AddGradients(Graph& g, ValueId y) {
  const std::vector<ValueId> parameters = g.OfKind(ValueKind::kParameter);
  const auto gradients = Differentiate(g, SumAll(g, y), parameters);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  for (size_t i = 0; i < parameters.size(); ++i)
    g.MarkOutput("grad." + g.value(parameters[i]).name, (*gradients)[i]);
}

// A stem, a residual block and a classifier.
inline void BuildResNet(Graph& g) {
  const auto weight = [&](const std::string& name, const Shape& shape) {
    return g.Parameter(name, shape, DType::kF32);
  };
  const ValueId images = g.Input("images", {4, 3, 64, 64}, DType::kF32);
  ValueId x = Conv2d(g, images, weight("stem", {16, 3, 3, 3}), ValueId{}, kSame, "stem");
  x = MaxPool2d(g, Relu(g, Norm(g, x, "bn0")), {3, 3}, {{2, 2}, {1, 1}});
  ValueId y = Conv2d(g, x, weight("w1", {16, 16, 3, 3}), ValueId{}, kSame, "conv1");
  y = Relu(g, Norm(g, y, "bn1"));
  y = Conv2d(g, y, weight("w2", {16, 16, 3, 3}), ValueId{}, kSame, "conv2");
  y = Relu(g, Add(g, Norm(g, y, "bn2"), x));
  y = Flatten(g, AdaptiveAvgPool2d(g, y, {1, 1}));
  AddGradients(g, Linear(g, y, weight("fc", {10, 16}), ValueId{}));
}

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_PASSES_TESTING_H_
