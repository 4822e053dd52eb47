// What the batch norm kernels of both layouts share. Internal to kernels/vector/.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_BATCH_NORM_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_BATCH_NORM_H_

#include <cmath>

namespace ringmaster::kernels::vector {

// One channel's y = x * slope + offset. Made of the statistics as they are kept, so that the
// gradient finds the same y again.
struct BatchAffine {
  float slope, offset;

  BatchAffine(float gamma, float beta, float mean, float variance, double epsilon) {
    const double scale = gamma / std::sqrt(static_cast<double>(variance) + epsilon);
    slope = static_cast<float>(scale);
    offset = static_cast<float>(beta - mean * scale);
  }
};

// The gradient by one channel's x from the two sums over it, of dy and of dy * (x - mean):
// dx = slope * dy + along * (x - mean) + offset, for the statistics depend on x (Ioffe and Szegedy,
// 2015).
struct BatchGradient {
  double dgamma, dbeta;
  float slope, along, offset;

  BatchGradient(float gamma, float variance, double epsilon, double sum, double projection,
                double count) {
    const double rstd = 1.0 / std::sqrt(static_cast<double>(variance) + epsilon);
    const double scale = gamma * rstd;
    dgamma = rstd * projection;
    dbeta = sum;
    slope = static_cast<float>(scale);
    along = static_cast<float>(-scale * dgamma * rstd / count);
    offset = static_cast<float>(-scale * dbeta / count);
  }
};

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_BATCH_NORM_H_
