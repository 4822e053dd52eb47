// A network from the configuration's list of layers.
#ifndef RINGMASTER_RUNTIME_NN_SEQUENTIAL_H_
#define RINGMASTER_RUNTIME_NN_SEQUENTIAL_H_

#include "runtime/nn/model_builder.h"

namespace ringmaster::training::v1alpha1 {
struct Sequential;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::nn {

// Applies the layers to `x`, one after another. A layer without a name is called "<kind><place>",
// places counted from 1 ("conv2d1"). A weight is drawn by what follows: Kaiming if the next
// activation is a ReLU, GELU or SiLU, Xavier if it is a tanh or sigmoid, or another weight comes
// first.
ValueId ApplySequential(ModelBuilder& b, const training::v1alpha1::Sequential& config, ValueId x);

}  // namespace ringmaster::nn

#endif  // RINGMASTER_RUNTIME_NN_SEQUENTIAL_H_
