// What happens to a graph before it is planned: passes, each of which makes a new graph that
// computes the same outputs with fewer passes over memory. Each takes a graph without an error and
// drops what no output needed in it; values from outside and outputs keep their names and their
// row-major order.
#ifndef RINGMASTER_RUNTIME_GRAPH_PASSES_PASSES_H_
#define RINGMASTER_RUNTIME_GRAPH_PASSES_PASSES_H_

#include <functional>
#include <string_view>

#include "runtime/graph/executor.h"
#include "runtime/graph/graph.h"
#include "runtime/kernels/kernel.h"

namespace ringmaster::graph {

// What follows from constants alone becomes a constant, as far as it is the same number everywhere:
// the node's own kernel computes it once, here. Large ones, of more than 2^18 elements, stay.
Graph FoldConstants(const Graph& graph, kernels::Selection selection);

// Leaves out what gives its input back: a reshape to the same shape, a slice of the whole, nothing
// padded, axes in their order, a single part concatenated, a copy that is no output, a product with
// 1, dropout of rate 0, the second of two ReLUs. Of two reshapes or transposes in a row, one is
// left, or none. Independent of kernels.
Graph Simplify(const Graph& graph);

// Of several nodes of one op with the same attributes and the same inputs, the first is computed,
// and the others' readers read it. What makes an output stays as it is: its memory is the caller's.
// Independent of kernels.
Graph MergeEqualNodes(const Graph& graph);

// The gradient of a ReLU that is pooled, before that of the pooling instead of behind it, where
// there are fewer pixels:
//   max_pool2d_grad, relu_grad of the same image -> relu_grad of the pooled one, max_pool2d_grad
// A pooled pixel is the one of its window that gets its gradient. What a bias's gradient sums are
// the pooled pixels', too, which are the same numbers beside zeros:
//   sum_to of max_pool2d_grad -> sum_to of what that takes
// Before FuseRelu. Independent of kernels.
Graph DelayPoolGrads(const Graph& graph);

// ReLU, and the sum before it, by the op before, of whose kernels ours make it in the pass over
// memory that they make anyway (a library's convolution or product takes a second one); the same on
// the way back from batch norm:
//   conv2d, relu           -> conv2d {relu=1}
//   linear, relu           -> linear {relu=1}
//   batch_norm, relu       -> batch_norm {relu=1}, and the same of batch_norm_synchronised and
//                             batch_norm_inference
//   batch_norm, add, relu  -> batch_norm {relu=1} with an addend, the same
//   relu_grad, batch_norm_grad (of the first form) -> batch_norm_grad {relu=1}
//   add, relu_grad         -> relu_grad of two gradients
// Only where nobody else reads what lies between. Independent of kernels.
Graph FuseRelu(const Graph& graph);

// Another activation of a linear layer's result, of small products while it is in the cache:
//   linear, tanh -> linear {tanh=1}, and the same of sigmoid, gelu, exact_gelu and silu,
// or, where somebody else reads the result, as a GELU's or SiLU's gradient does:
//   linear, gelu -> linear_activation {gelu=1}, which makes both.
// Independent of kernels.
Graph FuseActivation(const Graph& graph);

// Keeps images in `layout`, in which convolutions are fastest, through chains of ops that take it,
// with a "reorder" where one does not. Nothing changes where `layout` is row-major, and around
// convolutions of images in rows that are so small that a kernel of ours beats the library's.
Graph ChooseLayouts(const Graph& graph, tensor::Layout layout, kernels::Selection selection);

// The gradient of a residual block's end, ReLU of a batch norm's result plus what went around it:
//   relu_grad, batch_norm_grad -> batch_norm_add_relu_grad
// in one pass over memory where it was one each, for images in blocks, after ChooseLayouts.
Graph FuseResidualGrad(const Graph& graph, kernels::Selection selection);

// The gradient of a ReLU that a convolution reads, with that of the convolution, which then may lie
// where ReLU's result did:
//   conv2d_grad_input, relu_grad -> conv2d_grad_input of three
// For images in blocks, after ChooseLayouts.
Graph FuseReluGrad(const Graph& graph, kernels::Selection selection);

// The batch norm behind a convolution, with the ReLU and the addend that FuseRelu gave it, where
// the convolution writes its sums, in evaluation, where statistics are known before:
//   conv2d, batch_norm_inference -> conv2d_batch_norm
// Where the convolution has no bias, nobody else reads what lies between, and a kernel of ours does
// both (a library's would go over the result a second time, which is what the batch norm does),
// after ChooseLayouts. The bits are the same.
Graph FuseConvNorm(const Graph& graph, kernels::Selection selection);

// Max pooling of a batch norm's result while that is in registers, and both gradients, which need
// to know which pixels were the largest, a byte each, and no normalised image:
//   batch_norm, max_pool2d            -> batch_norm_max_pool2d
//   max_pool2d_grad, batch_norm_grad  -> batch_norm_max_pool2d_grad
// Where nobody else reads the image between, nor its gradient, for images in rows of which both
// kernels are ours, after ChooseLayouts. (In blocks, where each of the ops goes at memory's pace,
// gathering a pixel's gradient from overlapping windows costs what it saves.)
Graph FuseNormMaxPool(const Graph& graph, kernels::Selection selection);

// Which pixel of its window each pooled one was, a byte each, instead of the image that was pooled,
// where nobody but the gradient of the pooling would read that again:
//   max_pool2d, max_pool2d_grad -> max_pool2d_taps, max_pool2d_taps_grad
// For images in blocks, after ChooseLayouts.
Graph KeepTaps(const Graph& graph, kernels::Selection selection);

// Max pooling of what a network's first convolution makes, while that is in the cache; its gradient
// by the weights looks at the pixels that were the largest, and at no others:
//   conv2d, max_pool2d                   -> conv2d_max_pool2d
//   max_pool2d_grad, conv2d_grad_weight  -> conv2d_max_pool2d_grad_weight
// Where nobody else reads the image between, nor its gradient, for images in rows of which both
// kernels are ours, after ChooseLayouts.
Graph FuseMaxPool(const Graph& graph, kernels::Selection selection);

// Is told of each pass, by its name above, and of what it has made.
using PassObserver = std::function<void(std::string_view pass, const Graph& made)>;

// All of them that the options ask for, in the order in which each helps the next. The reference
// kernels know no layouts.
Graph Optimise(const Graph& graph, const CompileOptions& options,
               const PassObserver& observer = {});

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_PASSES_PASSES_H_
