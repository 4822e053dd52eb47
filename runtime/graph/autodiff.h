// Reverse-mode differentiation as a graph transform: the backward pass becomes nodes of the same
// graph.
#ifndef RINGMASTER_RUNTIME_GRAPH_AUTODIFF_H_
#define RINGMASTER_RUNTIME_GRAPH_AUTODIFF_H_

#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"

namespace ringmaster::graph {

// What the name of the first node that Differentiate adds begins with, and of most behind it.
// Passes leave a node of such a name where the backward pass begins.
inline constexpr std::string_view kGradientPrefix = "grad/";

// Adds nodes that compute d(loss)/d(value) for each of `wrt`, and returns those values in the order
// of `wrt`. `loss` is a scalar; where it is a sum over the samples of a shard, so are the
// gradients. A value that the loss does not depend on gets a gradient of zeros. Backward nodes are
// added from the loss towards the inputs, so gradients of the last layers are ready first.
//   kInvalidArgument     loss is not a scalar of f32 or f64, or an id is invalid
//   kUnimplemented       an op on the way has no gradient; the message names the node
//   or graph.status(), when the graph has an error already
absl::StatusOr<std::vector<ValueId>> Differentiate(Graph& graph, ValueId loss,
                                                   std::span<const ValueId> wrt);

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_AUTODIFF_H_
