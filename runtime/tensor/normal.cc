// FillNormal of random.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runtime/device/parallel.h"
#include "runtime/tensor/random.h"

namespace ringmaster::tensor {
namespace {

using Coefficients = std::array<double, 8>;

double Polynomial(const Coefficients& c, double x) {
  double sum = c.back();
  for (size_t i = c.size() - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// The natural logarithm of x in (0, 1], by the series of the inverse hyperbolic tangent: the C
// library's differs from one version to the next.
double Logarithm(double x) {
  constexpr double kLog2 = 0.693147180559945309417;
  constexpr double kHalfRoot = 0.70710678118654752440;
  constexpr int kTerms = 12;  // 0.0295^12 is below a double's precision
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // exact
  if (mantissa < kHalfRoot) {
    mantissa *= 2;
    --exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1), square = s * s;
  double sum = 0;
  for (int k = kTerms; k >= 0; --k) sum = sum * square + 1.0 / (2 * k + 1);
  return exponent * kLog2 + 2 * s * sum;
}

// The normal deviate below which a share p of them lies, 0 < p < 1. Relative error about 1e-16.
double NormalQuantile(double p) {
  static constexpr Coefficients kA = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                      1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                      4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                      3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr Coefficients kB = {1.0,
                                      4.2313330701600911252e+1,
                                      6.8718700749205790830e+2,
                                      5.3941960214247511077e+3,
                                      2.1213794301586595867e+4,
                                      3.9307895800092710610e+4,
                                      2.8729085735721942674e+4,
                                      5.2264952788528545610e+3};
  static constexpr Coefficients kC = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                      5.76949722146069140550e0,  3.64784832476320460504e0,
                                      1.27045825245236838258e0,  2.41780725177450611770e-1,
                                      2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr Coefficients kD = {1.0,
                                      2.05319162663775882187e0,
                                      1.67638483018380384940e0,
                                      6.89767334985100004550e-1,
                                      1.48103976427480074590e-1,
                                      1.51986665636164571966e-2,
                                      5.47593808499534494600e-4,
                                      1.05075007164441684324e-9};
  static constexpr Coefficients kE = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                      1.78482653991729133580e0,  2.96560571828504891230e-1,
                                      2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                      2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr Coefficients kF = {1.0,
                                      5.99832206555887937690e-1,
                                      1.36929880922735805310e-1,
                                      1.48753612908506148525e-2,
                                      7.86869131145613259100e-4,
                                      1.84631831751005468180e-5,
                                      1.42151175831644588870e-7,
                                      2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * Polynomial(kA, r) / Polynomial(kB, r);
  }
  const double r = std::sqrt(-Logarithm(std::min(p, 1 - p)));
  const double deviate = r <= 5 ? Polynomial(kC, r - 1.6) / Polynomial(kD, r - 1.6)
                                : Polynomial(kE, r - 5) / Polynomial(kF, r - 5);
  return q < 0 ? -deviate : deviate;
}

}  // namespace

void FillNormal(Tensor& tensor, float deviation, uint64_t seed, std::string_view name) {
  const RandomKey key{.seed = seed, .domain = RandomDomain::kInitialiser, .op = StreamOf(name)};
  const std::span<float> values = tensor.span<float>();
  const auto blocks = static_cast<int64_t>((values.size() + 3) / 4);
  device::ParallelFor(blocks, 64, [&](int64_t block) {
    const auto bits = RandomBlock(key, static_cast<uint32_t>(block));
    const size_t first = static_cast<size_t>(block) * 4;
    for (size_t i = first; i < std::min(first + 4, values.size()); ++i) {
      const double p = (static_cast<double>(bits[i - first]) + 0.5) * 0x1p-32;
      values[i] = static_cast<float>(NormalQuantile(p) * static_cast<double>(deviation));
    }
  });
}

}  // namespace ringmaster::tensor
