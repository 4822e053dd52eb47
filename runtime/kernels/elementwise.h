// The bodies of elementwise ops, each written once. A body is a stateless function of one element
// (and of the gradient that reaches it), so that any back end can run it in any order.
#ifndef RINGMASTER_RUNTIME_KERNELS_ELEMENTWISE_H_
#define RINGMASTER_RUNTIME_KERNELS_ELEMENTWISE_H_

#include <cmath>

namespace ringmaster::kernels {

struct AddBody {
  template <typename T>
  T operator()(T a, T b) const {
    return a + b;
  }
};

struct SubtractBody {
  template <typename T>
  T operator()(T a, T b) const {
    return a - b;
  }
};

struct DivideBody {
  template <typename T>
  T operator()(T a, T b) const {
    return a / b;
  }
};

struct MultiplyBody {
  template <typename T>
  T operator()(T a, T b) const {
    return a * b;
  }
};

struct ReluBody {
  template <typename T>
  T operator()(T x) const {
    return x > T(0) || x != x ? x : T(0);  // NaN stays, so that it is seen
  }
};

// From the result y.
struct ReluGradBody {
  template <typename T>
  T operator()(T y, T dy) const {
    return y > T(0) ? dy : T(0);
  }
};

struct SigmoidBody {
  template <typename T>
  T operator()(T x) const {
    return T(1) / (T(1) + std::exp(-x));
  }
};

// From the result y.
struct SigmoidGradBody {
  template <typename T>
  T operator()(T y, T dy) const {
    return dy * y * (T(1) - y);
  }
};

struct TanhBody {
  template <typename T>
  T operator()(T x) const {
    return std::tanh(x);
  }
};

// From the result y.
struct TanhGradBody {
  template <typename T>
  T operator()(T y, T dy) const {
    return dy * (T(1) - y * y);
  }
};

struct SiluBody {
  template <typename T>
  T operator()(T x) const {
    return x * SigmoidBody()(x);
  }
};

struct SiluGradBody {
  template <typename T>
  T operator()(T x, T dy) const {
    const T s = SigmoidBody()(x);
    return dy * (s + x * s * (T(1) - s));
  }
};

// The tanh form of Hendrycks and Gimpel, "Gaussian error linear units" (2016).
struct GeluBody {
  static constexpr double kRoot = 0.79788456080286535588;  // sqrt(2 / pi)
  static constexpr double kCubic = 0.044715;

  template <typename T>
  T operator()(T x) const {
    return T(0.5) * x * (T(1) + std::tanh(T(kRoot) * x * (T(1) + T(kCubic) * x * x)));
  }
};

struct GeluGradBody {
  template <typename T>
  T operator()(T x, T dy) const {
    const T t = std::tanh(T(GeluBody::kRoot) * x * (T(1) + T(GeluBody::kCubic) * x * x));
    const T inner = T(GeluBody::kRoot) * (T(1) + T(3 * GeluBody::kCubic) * x * x);
    return dy * T(0.5) * (T(1) + t + x * (T(1) - t * t) * inner);
  }
};

// With the error function instead of its approximation.
struct ExactGeluBody {
  static constexpr double kRootHalf = 0.70710678118654752440;  // sqrt(1 / 2)

  // The share of a standard normal distribution below x.
  template <typename T>
  static T Below(T x) {
    return T(0.5) * std::erfc(-x * T(kRootHalf));
  }

  template <typename T>
  T operator()(T x) const {
    return x * Below(x);
  }
};

struct ExactGeluGradBody {
  static constexpr double kDensity = 0.39894228040143267794;  // of the distribution at 0

  template <typename T>
  T operator()(T x, T dy) const {
    return dy * (ExactGeluBody::Below(x) + x * T(kDensity) * std::exp(T(-0.5) * x * x));
  }
};

}  // namespace ringmaster::kernels

#endif  // RINGMASTER_RUNTIME_KERNELS_ELEMENTWISE_H_
