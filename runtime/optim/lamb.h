// LAMB (You et al.: "Large batch optimization for deep learning: training BERT in 76 minutes", ICLR
// 2020, algorithm 2, with the identity for its phi), for each parameter by itself, with its norms
// over all of its weights, and t = step + 1:
//
//   g = scale * sum
//   m = beta1 * m + (1 - beta1) * g
//   v = beta2 * v + (1 - beta2) * g * g
//   r = m / (1 - beta1^t) / (sqrt(v) / sqrt(1 - beta2^t) + epsilon) + weight_decay * w
//   ratio = |w| / |r|;  1 where either is 0, and for groups that are not layer-wise
//   w = w - rate * ratio * r
//
// Norms are summed in double, in an order that depends on the parameter's size alone.
#ifndef RINGMASTER_RUNTIME_OPTIM_LAMB_H_
#define RINGMASTER_RUNTIME_OPTIM_LAMB_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/optim/optimizer.h"
#include "runtime/optim/segments.h"

namespace ringmaster::training::v1alpha1 {
struct Lamb;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::optim {

// Keeps two state buffers of `size` floats, "first_moment" and "second_moment". `segments` are cut
// by parameter. kInvalidArgument unless both betas are below 1.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeLamb(const training::v1alpha1::Lamb& config,
                                                    size_t size, std::vector<Segment> segments);

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_LAMB_H_
