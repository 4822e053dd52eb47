// Descent with the rate inside the momentum: what Caffe's solver and LARS have in common.
#ifndef RINGMASTER_RUNTIME_OPTIM_VELOCITY_STEP_H_
#define RINGMASTER_RUNTIME_OPTIM_VELOCITY_STEP_H_

#include <cstddef>

namespace ringmaster::optim {

// A formula's constants in the precision that it is computed in.
struct StepConstants {
  float rate, decay, momentum;
};

// v = momentum * v' + rate * (g + decay * w); w -= v, or, with Nesterov,
// w -= (1 + momentum) * v - momentum * v'.
template <bool kNesterov, typename Gradient>
void VelocityStep(const StepConstants& c, float* w, Gradient g, float* v, size_t begin,
                  size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const float last = c.momentum * v[i];
    v[i] = last + c.rate * (g[i] + c.decay * w[i]);
    w[i] -= kNesterov ? (1 + c.momentum) * v[i] - last : v[i];
  }
}

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_VELOCITY_STEP_H_
