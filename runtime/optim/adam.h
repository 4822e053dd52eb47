// Adam (Kingma and Ba: "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1), with
// weight decay added to the gradient as in PyTorch's Adam, and t = step + 1:
//
//   g = scale * sum + weight_decay * w
//   m = beta1 * m + (1 - beta1) * g
//   v = beta2 * v + (1 - beta2) * g * g
//   w = w - rate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
#ifndef RINGMASTER_RUNTIME_OPTIM_ADAM_H_
#define RINGMASTER_RUNTIME_OPTIM_ADAM_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/optim/optimizer.h"

namespace ringmaster::training::v1alpha1 {
struct Adam;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::optim {

// Keeps two state buffers, "first_moment" and "second_moment". kInvalidArgument unless both betas
// are below 1.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdam(const training::v1alpha1::Adam& config,
                                                    size_t size);

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_ADAM_H_
