// Networks by name.
#ifndef RINGMASTER_RUNTIME_NN_ZOO_H_
#define RINGMASTER_RUNTIME_NN_ZOO_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace ringmaster::training::v1alpha1 {
struct Sequential;
struct Zoo;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::nn {

// The layers of a named network that ends with `classes` logits:
//   lenet-bn  two 3x3 convolutions, each with batch norm, ReLU and 2x2 max pooling, and two
//             linear layers with dropout before the last: LeNet-5 (LeCun, Bottou, Bengio,
//             Haffner: "Gradient-based learning applied to document recognition", 1998) with
//             today's parts, for images from 4x4
// kInvalidArgument for another name; the message lists the known ones.
absl::StatusOr<training::v1alpha1::Sequential> ZooLayers(const training::v1alpha1::Zoo& config,
                                                         int64_t classes);

}  // namespace ringmaster::nn

#endif  // RINGMASTER_RUNTIME_NN_ZOO_H_
