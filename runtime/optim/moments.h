// The running first and second moments of the gradient, which Adam and its kin keep.
#ifndef RINGMASTER_RUNTIME_OPTIM_MOMENTS_H_
#define RINGMASTER_RUNTIME_OPTIM_MOMENTS_H_

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "absl/status/status.h"
#include "runtime/optim/optimizer.h"
#include "runtime/optim/power.h"

namespace ringmaster::optim {

struct MomentOptions {
  double beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
};

// What a configuration of any of them has in common.
template <typename Config>
MomentOptions MomentOptionsOf(const Config& config) {
  return {config.beta1, config.beta2, config.epsilon, config.weight_decay};
}

// With a beta of 1 a moment never leaves zero, and its correction divides by zero.
inline absl::Status CheckBetas(const MomentOptions& options, const char* kind) {
  if (options.beta1 < 1 && options.beta2 < 1) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("optimizer.{}: beta1 and beta2 are below 1", kind));
}

// Both moments, and the constants of a step in the precision that it is computed in.
struct Moments {
  Moments(const MomentOptions& options, size_t size)
      : options(options), first(size), second(size) {}

  // What the first moment is divided by, and the second one's root is multiplied by.
  double FirstCorrection(uint64_t step) const { return 1 - Power(options.beta1, step + 1); }
  double SecondCorrection(uint64_t step) const {
    return 1 / std::sqrt(1 - Power(options.beta2, step + 1));
  }
  std::vector<StateBuffer> state() { return {{"first_moment", first}, {"second_moment", second}}; }

  const MomentOptions options;
  std::vector<float> first, second;
};

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_MOMENTS_H_
