// The gradient of a stretch of weights, made from its sums as it is read: in the pass over memory
// that changes the weights.
#ifndef RINGMASTER_RUNTIME_OPTIM_GRADIENT_H_
#define RINGMASTER_RUNTIME_OPTIM_GRADIENT_H_

#include <cmath>
#include <cstddef>

#include "runtime/optim/elementwise.h"
#include "runtime/optim/optimizer.h"

namespace ringmaster::optim {

// Loops take it by value: of a copy of their own the compiler knows that no store changes it.
// `kCut`: whether there is a bound.
template <bool kCut>
class Gradient {
 public:
  Gradient(const float* sums, const UpdateOptions& options)
      : sums_(sums),
        scale_(static_cast<float>(options.gradient_scale)),
        bound_(static_cast<float>(options.gradient_bound)),
        exact_scale_(options.gradient_scale) {}

  float operator[](size_t i) const {
    const float g = scale_ * sums_[i];
    if constexpr (!kCut) return g;
    // As std::clamp, which the compiler would not vectorise.
    const float at_least = g < -bound_ ? -bound_ : g;
    return bound_ < at_least ? bound_ : at_least;
  }

  // Over `size` values, in double. Where none is cut it is that of the sums, scaled once.
  double Norm(size_t size) const {
    if constexpr (kCut)
      return std::sqrt(SumOfSquares(size, [g = *this](size_t i) { return g[i]; }));
    const double of_sums = SumOfSquares(size, [sums = sums_](size_t i) { return sums[i]; });
    return exact_scale_ * std::sqrt(of_sums);
  }

 private:
  const float* sums_;
  float scale_, bound_;
  double exact_scale_;
};

// Calls body(gradient).
template <typename Body>
void ReadGradient(const float* sums, const UpdateOptions& options, const Body& body) {
  if (std::isfinite(options.gradient_bound)) {
    body(Gradient<true>(sums, options));
  } else {
    body(Gradient<false>(sums, options));
  }
}

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_GRADIENT_H_
