// FillNormal of random.h.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "runtime/device/parallel.h"
#include "runtime/tensor/random.h"

namespace ringmaster::tensor {
namespace {

using Coefficients = std::array<double, 8>;

// Horner's rule, unrolled: so a loop around it becomes one of vectors.
template <size_t kCount, size_t... kPower>
inline double Horner(const std::array<double, kCount>& c, double x,
                     std::index_sequence<kPower...>) {
  double sum = c.back();
  ((sum = sum * x + c[kCount - 2 - kPower]), ...);
  return sum;
}

template <size_t kCount>
inline double Polynomial(const std::array<double, kCount>& c, double x) {
  return Horner(c, x, std::make_index_sequence<kCount - 1>());
}

// The natural logarithm of a normal x in (0, 1], by the series of the inverse hyperbolic tangent:
// the C library's differs from one version to the next.
inline double Logarithm(double x) {
  constexpr double kLog2 = 0.693147180559945309417;
  constexpr double kHalfRoot = 0.70710678118654752440;
  // 1 / (2 k + 1), up to where 0.0295^12 is below a double's precision.
  constexpr std::array kTerms = {1.0 / 1,  1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,
                                 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19,
                                 1.0 / 21, 1.0 / 23, 1.0 / 25};
  // x = mantissa * 2^exponent, with a mantissa in [0.5, 1) first; kBits are those of 2^52, whose
  // last place is 1.
  constexpr uint64_t kFraction = (uint64_t{1} << 52) - 1, kBits = uint64_t{0x433} << 52;
  const auto bits = std::bit_cast<uint64_t>(x);
  const double half = std::bit_cast<double>((bits & kFraction) | uint64_t{0x3FE} << 52);
  const double exponent = std::bit_cast<double>(kBits | bits >> 52) - 0x1p52 - 1022.0;
  const bool small = half < kHalfRoot;
  const double mantissa = small ? half * 2 : half;
  const double s = (mantissa - 1) / (mantissa + 1);
  return (small ? exponent - 1 : exponent) * kLog2 + 2 * s * Polynomial(kTerms, s * s);
}

// The normal deviate below which a share 0.5 + q of them lies, relative error about 1e-16: here
// where |q| is at most kCentral, with the same few operations for each.
constexpr double kCentral = 0.425;
inline double CentralQuantile(double q) {
  constexpr Coefficients kA = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                               1.9715909503065514427e+3, 1.3731693765509461125e+4,
                               4.5921953931549871457e+4, 6.7265770927008700853e+4,
                               3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr Coefficients kB = {1.0,
                               4.2313330701600911252e+1,
                               6.8718700749205790830e+2,
                               5.3941960214247511077e+3,
                               2.1213794301586595867e+4,
                               3.9307895800092710610e+4,
                               2.8729085735721942674e+4,
                               5.2264952788528545610e+3};
  const double r = 0.180625 - q * q;
  return q * Polynomial(kA, r) / Polynomial(kB, r);
}

// Where it is more, from r = sqrt(-log(share of the tail)), without the sign. The smallest share
// that is drawn, 2^-33, has r = 4.8: Wichura's third quotient, from 5 on, is not needed.
inline double TailQuantile(double r) {
  constexpr Coefficients kC = {1.42343711074968357734e0,  4.63033784615654529590e0,
                               5.76949722146069140550e0,  3.64784832476320460504e0,
                               1.27045825245236838258e0,  2.41780725177450611770e-1,
                               2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr Coefficients kD = {1.0,
                               2.05319162663775882187e0,
                               1.67638483018380384940e0,
                               6.89767334985100004550e-1,
                               1.48103976427480074590e-1,
                               1.51986665636164571966e-2,
                               5.47593808499534494600e-4,
                               1.05075007164441684324e-9};
  return Polynomial(kC, r - 1.6) / Polynomial(kD, r - 1.6);
}

// Numbers that are drawn at once. Those of the tails, one in seven, are gathered: what is alike is
// then computed in vectors, and no branch is guessed wrong.
constexpr size_t kChunk = 512;

void DrawChunk(const RandomKey& key, uint32_t first_block, double deviation, std::span<float> out) {
  std::array<double, kChunk> shares, deviates, roots, tails;
  std::array<uint32_t, kChunk> places;
  const size_t count = (out.size() + 3) / 4 * 4;
  for (size_t i = 0; i < count; i += 4) {
    const auto bits = RandomBlock(key, first_block + static_cast<uint32_t>(i / 4));
    for (size_t k = 0; k < 4; ++k) shares[i + k] = (static_cast<double>(bits[k]) + 0.5) * 0x1p-32;
  }
#pragma omp simd
  for (size_t i = 0; i < count; ++i) deviates[i] = CentralQuantile(shares[i] - 0.5);
  size_t gathered = 0;
  for (size_t i = 0; i < count; ++i) {
    places[gathered] = static_cast<uint32_t>(i);
    roots[gathered] = std::min(shares[i], 1 - shares[i]);
    gathered += std::abs(shares[i] - 0.5) > kCentral ? 1 : 0;
  }
#pragma omp simd
  for (size_t i = 0; i < gathered; ++i) tails[i] = -Logarithm(roots[i]);
  for (size_t i = 0; i < gathered; ++i) roots[i] = std::sqrt(tails[i]);
#pragma omp simd
  for (size_t i = 0; i < gathered; ++i) tails[i] = TailQuantile(roots[i]);
  for (size_t i = 0; i < gathered; ++i)
    deviates[places[i]] = shares[places[i]] < 0.5 ? -tails[i] : tails[i];
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(deviates[i] * deviation);
}

}  // namespace

void FillNormal(Tensor& tensor, float deviation, uint64_t seed, std::string_view name) {
  const RandomKey key{.seed = seed, .domain = RandomDomain::kInitialiser, .op = StreamOf(name)};
  const std::span<float> values = tensor.span<float>();
  const auto chunks = static_cast<int64_t>((values.size() + kChunk - 1) / kChunk);
  device::ParallelFor(chunks, kChunk * 16, [&](int64_t chunk) {
    const size_t first = static_cast<size_t>(chunk) * kChunk;
    DrawChunk(key, static_cast<uint32_t>(first / 4), static_cast<double>(deviation),
              values.subspan(first, std::min(kChunk, values.size() - first)));
  });
}

}  // namespace ringmaster::tensor
