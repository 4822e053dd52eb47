#include "runtime/kernels/vector/winograd_transforms.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

template <size_t kCount>
using Numbers = std::array<float, kCount>;

// Of windows of kTaps: the points besides 0 and infinity, each of them with both signs.
template <size_t kTaps>
constexpr auto kAt = Numbers<0>();
template <>
constexpr auto kAt<3> = Numbers<2>{0.625F, 1.5F};
template <>
constexpr auto kAt<5> = Numbers<3>{0.5F, 1, 2};

// What the matrices of windows of kTaps are made of. Values at the points are in the order of 0,
// the pairs, and infinity. Loops are unrolled, so that all that is known beforehand becomes numbers
// in the code.
template <size_t kTaps>
struct Points {
  static constexpr auto kEach = kAt<kTaps>;
  static constexpr size_t kPairs = kEach.size(), kCount = 2 * kPairs + 2, kLast = kCount - 1;
  using OfPairs = Numbers<kPairs>;

  // At [n], what a pair is to the power of 2 n.
  static constexpr std::array<OfPairs, kTaps> kPowers = [] {
    std::array<OfPairs, kTaps> powers{};
    powers[0].fill(1);
    for (size_t n = 1; n < kTaps; ++n) {
      for (size_t i = 0; i < kPairs; ++i) powers[n][i] = powers[n - 1][i] * kEach[i] * kEach[i];
    }
    return powers;
  }();

  // The product of x^2 - p^2 over all pairs but one: its coefficients, that of x^0 first.
  static constexpr Numbers<kPairs + 1> ProductWithout(size_t one) {
    Numbers<kPairs + 1> product{1};
    for (size_t i = 0; i < kPairs; ++i) {
      if (i == one) continue;
      for (size_t k = kPairs; k > 0; --k) product[k] = product[k - 1] - kPowers[1][i] * product[k];
      product[0] *= -kPowers[1][i];
    }
    return product;
  }
  // Without each pair, and of all.
  static constexpr auto kProducts = [] {
    std::array<Numbers<kPairs + 1>, kPairs + 1> products{};
    for (size_t i = 0; i <= kPairs; ++i) products[i] = ProductWithout(i);
    return products;
  }();
  static constexpr auto kAll = kProducts[kPairs];

  // One over the product of a point's differences from all others but infinity.
  static constexpr float kShareOfZero = 1 / kAll[0];
  static constexpr OfPairs kShares = [] {
    OfPairs shares{};
    for (size_t i = 0; i < kPairs; ++i) {
      float product = 2 * kPowers[1][i];
      for (size_t k = 0; k < kPairs; ++k) {
        if (k != i) product *= kPowers[1][i] - kPowers[1][k];
      }
      shares[i] = 1 / product;
    }
    return shares;
  }();
};

// The values at the points of a polynomial with kIn coefficients, lowest first; at infinity it is
// the highest.
template <size_t kTaps, size_t kCoefficients>
struct Values : Points<kTaps> {
  using P = Points<kTaps>;
  static constexpr size_t kIn = kCoefficients, kOut = P::kCount;

  [[gnu::always_inline]] static inline Numbers<kOut> Of(const Numbers<kIn>& c) {
    Numbers<kOut> v;
    v[0] = c[0];
#pragma GCC unroll 4
    for (size_t i = 0; i < P::kPairs; ++i) {
      const float even = EverySecond(i, c, (kIn - 1) / 2 * 2),
                  odd = EverySecond(i, c, (kIn - 2) / 2 * 2 + 1);
      v[2 * i + 1] = std::fma(P::kEach[i], odd, even);
      v[2 * i + 2] = std::fma(-P::kEach[i], odd, even);
    }
    v[P::kLast] = c[kIn - 1];
    return v;
  }

 private:
  // By powers of the square of pair `i`, down from coefficient `last`.
  [[gnu::always_inline]] static inline float EverySecond(size_t i, const Numbers<kIn>& c,
                                                         size_t last) {
    float sum = c[last];
#pragma GCC unroll 4
    for (size_t k = last; k > 1; k -= 2) sum = std::fma(P::kPowers[1][i], sum, c[k - 2]);
    return sum;
  }
};

// What pairs of values have together, and what is between them, times the point: these go with the
// even and with the odd coefficients.
template <size_t kTaps>
struct Halves {
  using P = Points<kTaps>;
  typename P::OfPairs sums, leans;

  [[gnu::always_inline]] explicit Halves(const Numbers<P::kCount>& v) {
#pragma GCC unroll 4
    for (size_t i = 0; i < P::kPairs; ++i) {
      sums[i] = v[2 * i + 1] + v[2 * i + 2];
      leans[i] = P::kEach[i] * (v[2 * i + 1] - v[2 * i + 2]);
    }
  }
  [[gnu::always_inline]] const typename P::OfPairs& operator[](size_t coefficient) const {
    return coefficient % 2 == 0 ? sums : leans;
  }
};

// The sum of factors[i] * x[i].
template <size_t kCount>
[[gnu::always_inline]] inline float Dot(const Numbers<kCount>& factors, const Numbers<kCount>& x) {
  float sum = factors[0] * x[0];
#pragma GCC unroll 4
  for (size_t i = 1; i < kCount; ++i) sum = std::fma(factors[i], x[i], sum);
  return sum;
}

// The adjoint of Values.
template <size_t kTaps, size_t kCoefficients>
struct ValuesGrad {
  using P = Points<kTaps>;
  static constexpr size_t kIn = P::kCount, kOut = kCoefficients;

  [[gnu::always_inline]] static inline Numbers<kOut> Of(const Numbers<kIn>& v) {
    const Halves<kTaps> halves(v);
    Numbers<kOut> c;
#pragma GCC unroll 8
    for (size_t k = 0; k < kOut; ++k) c[k] = Dot(P::kPowers[k / 2], halves[k]);
    c[0] += v[0];
    c[kOut - 1] += v[P::kLast];
    return c;
  }
};

// A^T: the result, and A.
template <size_t kTaps>
using Result = ValuesGrad<kTaps, static_cast<size_t>(kTileSide)>;
template <size_t kTaps>
using ResultGrad = Values<kTaps, static_cast<size_t>(kTileSide)>;

// What G has besides the values at the points.
template <size_t kTaps>
[[gnu::always_inline]] inline void Share(Numbers<Points<kTaps>::kCount>& v) {
  using P = Points<kTaps>;
  v[0] *= P::kShareOfZero;
#pragma GCC unroll 8
  for (size_t i = 1; i < P::kLast; ++i) v[i] *= P::kShares[(i - 1) / 2];
}

// G: the weights.
template <size_t kTaps>
struct Weight : Values<kTaps, kTaps> {
  using Base = Values<kTaps, kTaps>;
  [[gnu::always_inline]] static inline Numbers<Base::kOut> Of(const Numbers<kTaps>& g) {
    Numbers<Base::kOut> v = Base::Of(g);
    Share<kTaps>(v);
    return v;
  }
};

// G^T
template <size_t kTaps>
struct WeightGrad : ValuesGrad<kTaps, kTaps> {
  using Base = ValuesGrad<kTaps, kTaps>;
  [[gnu::always_inline]] static inline Numbers<kTaps> Of(Numbers<Base::kIn> u) {
    Share<kTaps>(u);
    return Base::Of(u);
  }
};

// B^T: the image.
template <size_t kTaps>
struct Image {
  using P = Points<kTaps>;
  static constexpr size_t kIn = P::kCount, kOut = P::kCount;

  [[gnu::always_inline]] static inline Numbers<kOut> Of(const Numbers<kIn>& d) {
    Numbers<kOut> v;
    v[0] = EverySecond(P::kAll, P::kPairs, d, 0);
#pragma GCC unroll 4
    for (size_t i = 0; i < P::kPairs; ++i) {
      const float even = EverySecond(P::kProducts[i], P::kPairs - 1, d, 2),
                  odd = EverySecond(P::kProducts[i], P::kPairs - 1, d, 1);
      v[2 * i + 1] = std::fma(P::kEach[i], odd, even);
      v[2 * i + 2] = std::fma(-P::kEach[i], odd, even);
    }
    v[P::kLast] = EverySecond(P::kAll, P::kPairs, d, 1);
    return v;
  }

 private:
  // The sum of factors[k] * d[first + 2 k], down from the last of them, which is 1.
  [[gnu::always_inline]] static inline float EverySecond(const Numbers<P::kPairs + 1>& factors,
                                                         size_t last, const Numbers<kIn>& d,
                                                         size_t first) {
    float sum = d[first + 2 * last];
#pragma GCC unroll 4
    for (size_t k = last; k > 0; --k) sum = std::fma(factors[k - 1], d[first + 2 * (k - 1)], sum);
    return sum;
  }
};

// B
template <size_t kTaps>
struct ImageGrad {
  using P = Points<kTaps>;
  static constexpr size_t kIn = P::kCount, kOut = P::kCount;

  [[gnu::always_inline]] static inline Numbers<kOut> Of(const Numbers<kIn>& v) {
    const Halves<kTaps> halves(v);
    Numbers<kOut> d;
    d[0] = P::kAll[0] * v[0];
#pragma GCC unroll 4
    for (size_t k = 0; k < P::kPairs; ++k) {
      const typename P::OfPairs factors = Factors(k);
      d[2 * k + 1] = std::fma(P::kAll[k], v[P::kLast], Dot(factors, halves.leans));
      d[2 * k + 2] = std::fma(P::kAll[k + 1], v[0], Dot(factors, halves.sums));
    }
    d[P::kLast] = v[P::kLast];
    return d;
  }

 private:
  // What the pairs' products have at a power.
  [[gnu::always_inline]] static inline typename P::OfPairs Factors(size_t power) {
    typename P::OfPairs factors;
#pragma GCC unroll 4
    for (size_t i = 0; i < P::kPairs; ++i) factors[i] = P::kProducts[i][power];
    return factors;
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
  static_assert(Points<kTaps>::kCount == PointsOf(kTaps));
  return {.image = Kind::template Run<Image<kTaps>>,
          .image_grad = Kind::template Run<ImageGrad<kTaps>>,
          .weight = Kind::template Run<Weight<kTaps>>,
          .weight_grad = Kind::template Run<WeightGrad<kTaps>>,
          .result = Kind::template Run<Result<kTaps>>,
          .result_grad = Kind::template Run<ResultGrad<kTaps>>};
}

constexpr WinogradTransforms kThree = MakeTransforms<Narrow<kTileColumns>, 3>(),
                             kFive = MakeTransforms<Narrow<kTileColumns>, 5>(),
                             kThreeOfEight = MakeTransforms<Narrow<8>, 3>(),
                             kFiveOfEight = MakeTransforms<Narrow<8>, 5>(),
                             kWideThree = MakeTransforms<Wide, 3>(),
                             kWideFive = MakeTransforms<Wide, 5>();

}  // namespace

const WinogradTransforms& WinogradTransformsFor(int64_t taps) {
  if (UsesWideTiles()) return taps == 3 ? kWideThree : kWideFive;
  return taps == 3 ? kThree : kFive;
}

const WinogradTransforms& WinogradTransformsOfEight(int64_t taps) {
  return taps == 3 ? kThreeOfEight : kFiveOfEight;
}

}  // namespace ringmaster::kernels::vector
