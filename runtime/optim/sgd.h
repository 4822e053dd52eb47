// Stochastic gradient descent with momentum, as PyTorch has it (Sutskever, Martens, Dahl, Hinton:
// "On the importance of initialization and momentum in deep learning", ICML 2013, in another
// scaling):
//
//   g = scale * sum + weight_decay * w
//   v = momentum * v + g
//   w = w - rate * v                      or, with Nesterov, w - rate * (g + momentum * v)
//
// The rate stands outside v, so that a schedule acts at once.
#ifndef RINGMASTER_RUNTIME_OPTIM_SGD_H_
#define RINGMASTER_RUNTIME_OPTIM_SGD_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/optim/optimizer.h"

namespace ringmaster::training::v1alpha1 {
struct Sgd;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::optim {

// Keeps one state buffer, "momentum", unless momentum is 0. kInvalidArgument for Nesterov without
// it.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeSgd(const training::v1alpha1::Sgd& config,
                                                   size_t size);

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_SGD_H_
