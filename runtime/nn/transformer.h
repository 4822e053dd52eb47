// A character-level transformer decoder in the shape of GPT-2 (Radford et al.: "Language models are
// unsupervised multitask learners", 2019): layer norm before each part, learned positions, GELU,
// weights of standard deviation 0.02, those of the projections into the residual stream divided by
// sqrt(2 * layers). The head has weights of its own.
#ifndef RINGMASTER_RUNTIME_NN_TRANSFORMER_H_
#define RINGMASTER_RUNTIME_NN_TRANSFORMER_H_

#include "runtime/nn/model_builder.h"

namespace ringmaster::training::v1alpha1 {
struct Transformer;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::nn {

struct DecoderOptions {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t width = 0;  // of the residual stream, a multiple of heads
  double dropout = 0;
  Initialiser (*draw)(double deviation) = nullptr;  // how weights of a deviation begin
};

// The blocks and the last layer norm, without what comes before and after: x [batch, time, width]
// to the same.
ValueId DecoderBlocks(ModelBuilder& b, const DecoderOptions& options, ValueId x);

// `tokens` i32 [batch, time] to logits [batch, time, classes].
ValueId ApplyTransformer(ModelBuilder& b, const training::v1alpha1::Transformer& config,
                         ValueId tokens);

}  // namespace ringmaster::nn

#endif  // RINGMASTER_RUNTIME_NN_TRANSFORMER_H_
