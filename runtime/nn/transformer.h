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

// `tokens` i32 [batch, time] to logits [batch, time, classes].
ValueId ApplyTransformer(ModelBuilder& b, const training::v1alpha1::Transformer& config,
                         ValueId tokens);

}  // namespace ringmaster::nn

#endif  // RINGMASTER_RUNTIME_NN_TRANSFORMER_H_
