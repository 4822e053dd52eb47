// Bounds a gradient before an optimizer sees it: by its norm (Pascanu, Mikolov, Bengio: "On the
// difficulty of training recurrent neural networks", ICML 2013), with g = scale * sum over all
// parameters,
//
//   g = g * bound / |g|            where |g| > bound
//
// or each value by itself, to [-bound, bound].
#ifndef RINGMASTER_RUNTIME_OPTIM_CLIP_H_
#define RINGMASTER_RUNTIME_OPTIM_CLIP_H_

#include <memory>

#include "runtime/optim/optimizer.h"

namespace ringmaster::training::v1alpha1 {
struct Clip;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::optim {

// `optimizer`, of `size` weights, with its gradients bounded. Its state is the optimizer's.
std::unique_ptr<Optimizer> Clipped(const training::v1alpha1::Clip& config, size_t size,
                                   std::unique_ptr<Optimizer> optimizer);

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_CLIP_H_
