// Adam (Kingma and Ba: "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1), with
// weight decay added to the gradient as in PyTorch's Adam, and t = step + 1:
//
//   g = scale * sum + weight_decay * w
//   m = beta1 * m + (1 - beta1) * g
//   v = beta2 * v + (1 - beta2) * g * g
//   w = w - rate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
//
// AdamW (Loshchilov and Hutter: "Decoupled weight decay regularization", ICLR 2019, algorithm 2, as
// PyTorch has it, where the rate multiplies the decay) leaves the decay out of g; before its step
// w loses rate * weight_decay * w.
#ifndef RINGMASTER_RUNTIME_OPTIM_ADAM_H_
#define RINGMASTER_RUNTIME_OPTIM_ADAM_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/optim/optimizer.h"
#include "runtime/optim/segments.h"

namespace ringmaster::training::v1alpha1 {
struct Adam;
struct AdamW;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::optim {

// Each keeps two state buffers of `size` floats, "first_moment" and "second_moment".
// kInvalidArgument unless both betas are below 1.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdam(const training::v1alpha1::Adam& config,
                                                    size_t size, std::vector<Segment> segments);
absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdamW(const training::v1alpha1::AdamW& config,
                                                     size_t size, std::vector<Segment> segments);

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_ADAM_H_
