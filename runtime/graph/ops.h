// The ops that models are built from. Each function adds one node (or a few) to the graph and
// returns its result; mistakes stick in Graph::status() (see graph.h). An empty `name` is made up.
//
// Layouts: images are [batch, channels, height, width]; sequences [batch, time, features]; the
// first axis is always the batch. f32 throughout; f64 works on the reference kernels, for gradient
// checks. Labels and tokens are i32. ValueId{} stands for an absent optional input.
#ifndef RINGMASTER_RUNTIME_GRAPH_OPS_H_
#define RINGMASTER_RUNTIME_GRAPH_OPS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/graph/graph.h"

namespace ringmaster::graph {

// --- Linear algebra ----------------------------------------------------------------------------

// x [..., in] times weight [out, in] transposed, plus bias [out] (optional): [..., out].
ValueId Linear(Graph& g, ValueId x, ValueId weight, ValueId bias, std::string_view name = "");

// The product of two matrices, each optionally transposed. All axes of an operand but the last are
// taken together as its rows; an untransposed `a` gives its leading axes to the result.
ValueId MatMul(Graph& g, ValueId a, ValueId b, bool transpose_a = false, bool transpose_b = false,
               std::string_view name = "");

// As many products as the leading axes, which are alike, have places: a [..., m, k] times
// b [..., k, n] is [..., m, n]. Either operand's matrices may be given transposed.
ValueId BatchMatMul(Graph& g, ValueId a, ValueId b, bool transpose_a = false,
                    bool transpose_b = false, std::string_view name = "");

// In pixels, {height, width}.
struct Conv2dOptions {
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};   // zeros on each side
  std::array<int64_t, 2> dilation = {1, 1};  // from one tap of the kernel to the next
  // Into so many groups channels are divided; an output channel sees its own group's inputs alone.
  // As many groups as input channels: a depthwise convolution.
  int64_t groups = 1;
};

// Cross-correlation of x [N, C, H, W] with weight [O, C/groups, kh, kw], plus bias [O] (optional).
ValueId Conv2d(Graph& g, ValueId x, ValueId weight, ValueId bias, const Conv2dOptions& options = {},
               std::string_view name = "");

// --- Pooling -----------------------------------------------------------------------------------

// In pixels, {height, width}.
struct PoolOptions {
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};  // zeros (minus infinity in max pooling) on each side
  bool count_padding = true;                // whether a mean counts padding zeros as elements
};

// The largest of each window; among equals the first in row order gets the gradient. The padding
// must be less than the window.
ValueId MaxPool2d(Graph& g, ValueId x, std::array<int64_t, 2> window, const PoolOptions& options,
                  std::string_view name = "");
// The mean of each window.
ValueId AvgPool2d(Graph& g, ValueId x, std::array<int64_t, 2> window, const PoolOptions& options,
                  std::string_view name = "");
// Means so that the result is [N, C] + size whatever the image: place o of an axis is the mean of
// inputs floor(o * in / out) to ceil((o + 1) * in / out) - 1, as in PyTorch. {1, 1}: the mean of
// the whole image.
ValueId AdaptiveAvgPool2d(Graph& g, ValueId x, std::array<int64_t, 2> size,
                          std::string_view name = "");
// The same with the largest of each window instead of its mean; the first of equals in row order
// gets the gradient.
ValueId AdaptiveMaxPool2d(Graph& g, ValueId x, std::array<int64_t, 2> size,
                          std::string_view name = "");

// --- Elementwise -------------------------------------------------------------------------------

ValueId Relu(Graph& g, ValueId x, std::string_view name = "");
// The tanh form, as GPT-2 has it: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
ValueId Gelu(Graph& g, ValueId x, std::string_view name = "");
// x times the share of a standard normal distribution below it: x/2 (1 + erf(x / sqrt(2))), which
// the tanh form comes close to (Hendrycks, Gimpel: "Gaussian error linear units", 2016).
ValueId ExactGelu(Graph& g, ValueId x, std::string_view name = "");
ValueId Tanh(Graph& g, ValueId x, std::string_view name = "");
// 1 / (1 + exp(-x)).
ValueId Sigmoid(Graph& g, ValueId x, std::string_view name = "");
// x times its sigmoid (Elfwing, Uchibe, Doya: "Sigmoid-weighted linear units", 2017).
ValueId Silu(Graph& g, ValueId x, std::string_view name = "");
// a + b; shapes are broadcast as in NumPy: aligned at their last axes, an extent of 1, or none, is
// repeated. An `a` that is smaller than the result is first written at its full size, unless a and
// b can change places.
ValueId Add(Graph& g, ValueId a, ValueId b, std::string_view name = "");
// a - b, element by element; broadcast as in Add.
ValueId Subtract(Graph& g, ValueId a, ValueId b, std::string_view name = "");
// a * b, element by element; broadcast as in Add.
ValueId Multiply(Graph& g, ValueId a, ValueId b, std::string_view name = "");
// a / b, element by element; broadcast as in Add.
ValueId Divide(Graph& g, ValueId a, ValueId b, std::string_view name = "");
// x times a constant.
ValueId Scale(Graph& g, ValueId x, double factor, std::string_view name = "");

// Zeroes each element with probability `rate` in [0, 1) and scales the rest by 1/(1-rate). The mask
// is keyed by (RunContext::seed, the sample's position, this op's number in the graph, the
// element's place in the sample): never by rank or shard. Leave it out of an evaluation graph.
ValueId Dropout(Graph& g, ValueId x, double rate, std::string_view name = "");

// A tensor that holds `value` everywhere.
ValueId Constant(Graph& g, double value, const ValueSpec& spec, std::string_view name = "");

// --- Shape -------------------------------------------------------------------------------------

// The same elements under another shape; no memory is touched.
ValueId Reshape(Graph& g, ValueId x, const Shape& shape, std::string_view name = "");
// [N, ...] to [N, product of the rest].
ValueId Flatten(Graph& g, ValueId x, std::string_view name = "");
// x with its axes in another order: axis i of the result is x's axes[i]. Any type.
ValueId Transpose(Graph& g, ValueId x, std::span<const int64_t> axes, std::string_view name = "");
// The inputs side by side along `axis`; their other extents are alike. Any type.
ValueId Concat(Graph& g, std::span<const ValueId> inputs, int axis, std::string_view name = "");
// The box of `size` whose first element is x's at `begin`. Any type.
ValueId Slice(Graph& g, ValueId x, std::span<const int64_t> begin, const Shape& size,
              std::string_view name = "");
// x with so many zeros before and after it on each axis. Any type.
ValueId Pad(Graph& g, ValueId x, std::span<const int64_t> before, std::span<const int64_t> after,
            std::string_view name = "");
// Sums x over what broadcasting would have added, to `shape`. The adjoint of broadcasting.
ValueId SumTo(Graph& g, ValueId x, const Shape& shape, std::string_view name = "");

// --- Reductions --------------------------------------------------------------------------------

// The mean, and the largest, of x over `axes`, which are counted from 0, or from the end where they
// are negative, and have an extent of 1 in the result: it broadcasts to x. Of equal elements the
// first in row order gets the gradient; what is no number stays.
ValueId MeanOver(Graph& g, ValueId x, std::span<const int64_t> axes, std::string_view name = "");
ValueId MaxOver(Graph& g, ValueId x, std::span<const int64_t> axes, std::string_view name = "");

// --- Normalisation -----------------------------------------------------------------------------

// `mean` and `variance` (biased: divided by the count) are the batch's own, [C]. Running statistics
// are the train loop's: it folds them in at commit. No gradient flows through `mean` and
// `variance`.
struct BatchNormResult {
  ValueId y, mean, variance;
};

// x [N, C] or [N, C, H, W], gamma and beta [C], normalised per channel by the batch's statistics.
BatchNormResult BatchNorm(Graph& g, ValueId x, ValueId gamma, ValueId beta, double epsilon,
                          std::string_view name = "");
// The same by the statistics of the whole batch of a step, over all of its shards: a run waits
// where it needs them (Executor::Advance), forward and backward. Sums are f64. `variance` is
// unbiased here (divided by the count less one, or by 1), as running statistics want it; y is
// normalised by the biased one. The gradients of gamma and beta are this shard's own.
BatchNormResult SynchronisedBatchNorm(Graph& g, ValueId x, ValueId gamma, ValueId beta,
                                      double epsilon, std::string_view name = "");
// By given statistics [C].
ValueId BatchNormInference(Graph& g, ValueId x, ValueId gamma, ValueId beta, ValueId mean,
                           ValueId variance, double epsilon, std::string_view name = "");
// x [..., D], gamma and beta [D], normalised over the last axis.
ValueId LayerNorm(Graph& g, ValueId x, ValueId gamma, ValueId beta, double epsilon,
                  std::string_view name = "");

// --- Sequences ---------------------------------------------------------------------------------

// table [vocabulary, D], indices i32 [...]: rows, [..., D]. An index outside the table gives a row
// of NaN, so that it is seen in the loss, and its gradient goes nowhere.
ValueId Embedding(Graph& g, ValueId table, ValueId indices, std::string_view name = "");

// Multi-head self attention in which time t sees times 0 to t. qkv [B, T, 3 D] holds queries, keys
// and values side by side, each of `heads` heads of D/heads; the result is [B, T, D], before the
// output projection. Scores are scaled by 1/sqrt(D/heads).
ValueId CausalAttention(Graph& g, ValueId qkv, int64_t heads, std::string_view name = "");

// exp(x) divided by the sum of the exponentials, over the last axis.
ValueId Softmax(Graph& g, ValueId x, std::string_view name = "");

// --- Loss --------------------------------------------------------------------------------------

// `loss` is the SUM over the labels (a scalar), `correct` how many labels have the largest logit (a
// scalar of the logits' type, exact to 2^24; the first of equals counts). Divide by the number of
// labels later.
struct LossResult {
  ValueId loss, correct;
};

// logits [..., classes], labels i32 [...] in [0, classes). A label outside makes the loss NaN. For
// language models labels are [batch, time]. With smoothing s in [0, 1) the target is 1 - s at the
// label, and s / classes more everywhere (Szegedy et al.: "Rethinking the inception architecture",
// CVPR 2016, section 7).
LossResult SoftmaxCrossEntropy(Graph& g, ValueId logits, ValueId labels, double smoothing = 0,
                               std::string_view name = "");

// Each logit alone says whether its label is 1: labels i32, 0 or 1, of the logits' shape. Another
// label makes the loss NaN. `correct` counts labels on whose side of 0 the logit lies (0: label 0).
LossResult BinaryCrossEntropy(Graph& g, ValueId logits, ValueId labels, std::string_view name = "");

// x minus the logarithm of the sum of its exponentials, over the last axis.
ValueId LogSoftmax(Graph& g, ValueId x, std::string_view name = "");

// Minus the log-probabilities [..., classes] at the labels, i32 [...] in [0, classes); a label
// outside makes the loss NaN. Of LogSoftmax's result it is the cross-entropy.
LossResult Nll(Graph& g, ValueId log_probabilities, ValueId labels, std::string_view name = "");

// The sum of (x - target)^2, a scalar; both of one shape. Divided by the elements, the mean square.
ValueId SquaredError(Graph& g, ValueId x, ValueId target, std::string_view name = "");

// Labels i32 [...] in [0, classes) as rows of f32 or f64, [..., classes]: 1 at the label, 0
// elsewhere. A label outside is a row of NaN, so that it is seen in the loss.
ValueId OneHot(Graph& g, ValueId labels, int64_t classes, DType dtype = DType::kF32,
               std::string_view name = "");

// The squared difference between scores [..., classes] and OneHot of the labels, i32 [...]: its
// mean over the classes, summed over the labels. `correct` is as above.
LossResult MeanSquare(Graph& g, ValueId scores, ValueId labels, std::string_view name = "");

// The sum of all elements, a scalar.
ValueId SumAll(Graph& g, ValueId x, std::string_view name = "");

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_OPS_H_
