#include "runtime/kernels/vector/winograd_transforms.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

constexpr float kNear = 0.625F, kFar = 1.5F;
constexpr float kNear2 = kNear * kNear, kFar2 = kFar * kFar;
// Each point's product of its differences from all others.
constexpr float kAtZero = kNear2 * kFar2;
constexpr float kAtNear = 2 * kNear2 * (kNear2 - kFar2);
constexpr float kAtFar = 2 * kFar2 * (kFar2 - kNear2);

// Matrices along one axis, each of `kIn` numbers to `kOut`.
template <size_t kCount>
using Numbers = std::array<float, kCount>;

// B^T: the image.
struct Image {
  static constexpr size_t kIn = 6, kOut = 6;
  static Numbers<6> Of(const Numbers<6>& d) {
    const float near_even = std::fma(-kFar2, d[2], d[4]), near_odd = std::fma(-kFar2, d[1], d[3]);
    const float far_even = std::fma(-kNear2, d[2], d[4]), far_odd = std::fma(-kNear2, d[1], d[3]);
    return {std::fma(kAtZero, d[0], std::fma(-(kNear2 + kFar2), d[2], d[4])),
            std::fma(kNear, near_odd, near_even),
            std::fma(-kNear, near_odd, near_even),
            std::fma(kFar, far_odd, far_even),
            std::fma(-kFar, far_odd, far_even),
            std::fma(kAtZero, d[1], std::fma(-(kNear2 + kFar2), d[3], d[5]))};
  }
};

// B
struct ImageGrad {
  static constexpr size_t kIn = 6, kOut = 6;
  static Numbers<6> Of(const Numbers<6>& v) {
    const float near_sum = v[1] + v[2], near_lean = kNear * (v[1] - v[2]);
    const float far_sum = v[3] + v[4], far_lean = kFar * (v[3] - v[4]);
    constexpr float kBoth = kNear2 + kFar2;
    return {kAtZero * v[0],
            std::fma(-kFar2, near_lean, std::fma(-kNear2, far_lean, kAtZero * v[5])),
            std::fma(-kFar2, near_sum, std::fma(-kNear2, far_sum, -kBoth * v[0])),
            std::fma(-kBoth, v[5], near_lean + far_lean),
            v[0] + (near_sum + far_sum),
            v[5]};
  }
};

// G: the weights.
template <size_t kTaps>
struct Weight;
// G^T
template <size_t kTaps>
struct WeightGrad;
// A^T: the result.
template <size_t kResults>
struct Result;
// A
template <size_t kResults>
struct ResultGrad;

template <>
struct Weight<3> {
  static constexpr size_t kIn = 3, kOut = 6;
  static Numbers<6> Of(const Numbers<3>& g) {
    const float near_even = std::fma(kNear2, g[2], g[0]), near_odd = kNear * g[1];
    const float far_even = std::fma(kFar2, g[2], g[0]), far_odd = kFar * g[1];
    return {(1 / kAtZero) * g[0],
            (1 / kAtNear) * (near_even + near_odd),
            (1 / kAtNear) * (near_even - near_odd),
            (1 / kAtFar) * (far_even + far_odd),
            (1 / kAtFar) * (far_even - far_odd),
            g[2]};
  }
};

template <>
struct Weight<5> {
  static constexpr size_t kIn = 5, kOut = 6;
  static Numbers<6> Of(const Numbers<5>& g) {
    const float near_even = std::fma(kNear2, std::fma(kNear2, g[4], g[2]), g[0]),
                near_odd = kNear * std::fma(kNear2, g[3], g[1]);
    const float far_even = std::fma(kFar2, std::fma(kFar2, g[4], g[2]), g[0]),
                far_odd = kFar * std::fma(kFar2, g[3], g[1]);
    return {(1 / kAtZero) * g[0],
            (1 / kAtNear) * (near_even + near_odd),
            (1 / kAtNear) * (near_even - near_odd),
            (1 / kAtFar) * (far_even + far_odd),
            (1 / kAtFar) * (far_even - far_odd),
            g[4]};
  }
};

template <>
struct WeightGrad<3> {
  static constexpr size_t kIn = 6, kOut = 3;
  static Numbers<3> Of(const Numbers<6>& u) {
    const float near_sum = (1 / kAtNear) * (u[1] + u[2]), near_lean = u[1] - u[2];
    const float far_sum = (1 / kAtFar) * (u[3] + u[4]), far_lean = u[3] - u[4];
    return {std::fma(1 / kAtZero, u[0], near_sum + far_sum),
            std::fma(kNear / kAtNear, near_lean, kFar / kAtFar * far_lean),
            std::fma(kNear2, near_sum, std::fma(kFar2, far_sum, u[5]))};
  }
};

template <>
struct WeightGrad<5> {
  static constexpr size_t kIn = 6, kOut = 5;
  static Numbers<5> Of(const Numbers<6>& u) {
    const float near_sum = (1 / kAtNear) * (u[1] + u[2]),
                near_lean = kNear / kAtNear * (u[1] - u[2]);
    const float far_sum = (1 / kAtFar) * (u[3] + u[4]), far_lean = kFar / kAtFar * (u[3] - u[4]);
    return {std::fma(1 / kAtZero, u[0], near_sum + far_sum), near_lean + far_lean,
            std::fma(kNear2, near_sum, kFar2 * far_sum),
            std::fma(kNear2, near_lean, kFar2 * far_lean),
            std::fma(kNear2 * kNear2, near_sum, std::fma(kFar2 * kFar2, far_sum, u[5]))};
  }
};

template <>
struct Result<2> {
  static constexpr size_t kIn = 6, kOut = 2;
  static Numbers<2> Of(const Numbers<6>& v) {
    return {v[0] + ((v[1] + v[2]) + (v[3] + v[4])),
            std::fma(kNear, v[1] - v[2], std::fma(kFar, v[3] - v[4], v[5]))};
  }
};

template <>
struct Result<4> {
  static constexpr size_t kIn = 6, kOut = 4;
  static Numbers<4> Of(const Numbers<6>& v) {
    const float near_sum = v[1] + v[2], near_lean = kNear * (v[1] - v[2]);
    const float far_sum = v[3] + v[4], far_lean = kFar * (v[3] - v[4]);
    return {v[0] + (near_sum + far_sum), near_lean + far_lean,
            std::fma(kNear2, near_sum, kFar2 * far_sum),
            std::fma(kNear2, near_lean, std::fma(kFar2, far_lean, v[5]))};
  }
};

template <>
struct ResultGrad<2> {
  static constexpr size_t kIn = 2, kOut = 6;
  static Numbers<6> Of(const Numbers<2>& y) {
    return {y[0],
            std::fma(kNear, y[1], y[0]),
            std::fma(-kNear, y[1], y[0]),
            std::fma(kFar, y[1], y[0]),
            std::fma(-kFar, y[1], y[0]),
            y[1]};
  }
};

template <>
struct ResultGrad<4> {
  static constexpr size_t kIn = 4, kOut = 6;
  static Numbers<6> Of(const Numbers<4>& y) {
    const float near_even = std::fma(kNear2, y[2], y[0]), near_odd = std::fma(kNear2, y[3], y[1]);
    const float far_even = std::fma(kFar2, y[2], y[0]), far_odd = std::fma(kFar2, y[3], y[1]);
    return {y[0],
            std::fma(kNear, near_odd, near_even),
            std::fma(-kNear, near_odd, near_even),
            std::fma(kFar, far_odd, far_even),
            std::fma(-kFar, far_odd, far_even),
            y[3]};
  }
};

// One axis. The compiler makes vectors of the lanes.
template <typename Matrix, int64_t kLanes, size_t... kIn, size_t... kOut>
[[gnu::always_inline]] inline void AlongOne(std::index_sequence<kIn...>,
                                            std::index_sequence<kOut...>, const float* from,
                                            int64_t from_step, float* to, int64_t to_step) {
#pragma GCC ivdep
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    const Numbers<Matrix::kOut> y =
        Matrix::Of({from[static_cast<int64_t>(kIn) * from_step + lane]...});
    ((to[static_cast<int64_t>(kOut) * to_step + lane] = y[kOut]), ...);
  }
}

template <typename Matrix, int64_t kLanes>
[[gnu::always_inline]] inline void AlongBoth(const float* from, Strides strides, float* to,
                                             int64_t step) {
  constexpr int64_t kIn = Matrix::kIn, kOut = Matrix::kOut;
  constexpr auto kEach = std::make_index_sequence<Matrix::kIn>();
  constexpr auto kMade = std::make_index_sequence<Matrix::kOut>();
  alignas(64) float half[kOut * kIn * kLanes];
  for (int64_t j = 0; j < kIn; ++j) {
    AlongOne<Matrix, kLanes>(kEach, kMade, from + j * strides.column, strides.row,
                             half + j * kLanes, kIn * kLanes);
  }
  for (int64_t i = 0; i < kOut; ++i) {
    AlongOne<Matrix, kLanes>(kEach, kMade, half + i * kIn * kLanes, kLanes, to + i * kOut * step,
                             step);
  }
}

// The same for both kinds of processors, so that each lane has the same bits.
template <int64_t kLanes>
struct Narrow {
  template <typename Matrix>
  static void Run(const float* from, Strides strides, float* to, int64_t step) {
    AlongBoth<Matrix, kLanes>(from, strides, to, step);
  }
};

struct Wide {
  template <typename Matrix>
  [[gnu::target("avx512f")]] static void Run(const float* from, Strides strides, float* to,
                                             int64_t step) {
    AlongBoth<Matrix, kTileColumns>(from, strides, to, step);
  }
};

template <typename Kind, size_t kTaps>
constexpr WinogradTransforms MakeTransforms() {
  constexpr size_t kResults = kPoints + 1 - kTaps;
  return {.image = Kind::template Run<Image>,
          .image_grad = Kind::template Run<ImageGrad>,
          .weight = Kind::template Run<Weight<kTaps>>,
          .weight_grad = Kind::template Run<WeightGrad<kTaps>>,
          .result = Kind::template Run<Result<kResults>>,
          .result_grad = Kind::template Run<ResultGrad<kResults>>};
}

constexpr WinogradTransforms kThree = MakeTransforms<Narrow<kTileColumns>, 3>(),
                             kFive = MakeTransforms<Narrow<kTileColumns>, 5>(),
                             kThreeOfEight = MakeTransforms<Narrow<8>, 3>(),
                             kWideThree = MakeTransforms<Wide, 3>(),
                             kWideFive = MakeTransforms<Wide, 5>();

}  // namespace

const WinogradTransforms& WinogradTransformsFor(int64_t taps) {
  if (UsesWideTiles()) return taps == 3 ? kWideThree : kWideFive;
  return taps == 3 ? kThree : kFive;
}

const WinogradTransforms& WinogradTransformsOfEight() {
  return kThreeOfEight;
}

}  // namespace ringmaster::kernels::vector
