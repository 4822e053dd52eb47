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
#include <span>

#include "runtime/optim/optimizer.h"

namespace ringmaster::training::v1alpha1 {
struct Clip;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::optim {

// Of all gradient sums, in double; what the norm is made of. It is a number if and only if they all
// are, for squares of floats do not overflow a double: one pass serves both questions.
double SumOfSquares(std::span<const float> gradient_sums);

// `optimizer`, of `size` weights, with its gradients bounded. Its state is the optimizer's. One
// that is `custom` heeds no UpdateOptions::gradient_bound: it is given values that are cut already.
//
// Passes over the gradient: one for the norm, unless it is given; none of its own for a bound of
// each value, which the optimizer's own pass heeds; a custom one costs a pass and a copy.
std::unique_ptr<Optimizer> Clipped(const training::v1alpha1::Clip& config, size_t size, bool custom,
                                   std::unique_ptr<Optimizer> optimizer);

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_CLIP_H_
