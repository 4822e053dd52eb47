// Stochastic gradient descent with momentum, in two forms. As PyTorch has it (Sutskever, Martens,
// Dahl, Hinton: "On the importance of initialization and momentum in deep learning", ICML 2013, in
// another scaling), the rate stands outside v, so that a schedule acts at once:
//
//   g = scale * sum + weight_decay * w
//   v = momentum * v + g
//   w = w - rate * v                      or, with Nesterov, w - rate * (g + momentum * v)
//
// As Caffe's SGD and Nesterov solvers have it, the rate stands inside, so that v remembers the
// rates of its steps; v' is the last step's v:
//
//   v = momentum * v' + rate * g
//   w = w - v                             or, with Nesterov, w - ((1 + momentum) * v - momentum *
//   v')
#ifndef RINGMASTER_RUNTIME_OPTIM_SGD_H_
#define RINGMASTER_RUNTIME_OPTIM_SGD_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/optim/optimizer.h"
#include "runtime/optim/segments.h"

namespace ringmaster::training::v1alpha1 {
struct Sgd;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::optim {

// Keeps one state buffer of `size` floats, "momentum", or "velocity" in Caffe's form, unless
// momentum is 0. kInvalidArgument for Nesterov without it.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeSgd(const training::v1alpha1::Sgd& config,
                                                   size_t size, std::vector<Segment> segments);

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_SGD_H_
