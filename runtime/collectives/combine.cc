#include "runtime/collectives/combine.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/check.h"

namespace ringmaster::collectives {
namespace {

constexpr size_t kVectorBytes = 64;
constexpr size_t kBlock = 256;  // 16-bit floats that are widened at a time

// Each works on numbers and on vectors of them. By reference, because passing such vectors by value
// depends on the instruction set. kSelects: a NaN on the left would be lost.
struct Sum {
  static constexpr bool kSelects = false;
  template <typename V>
  static void Of(const V& a, const V& b, V& out) {
    out = a + b;
  }
};
struct Product {
  static constexpr bool kSelects = false;
  template <typename V>
  static void Of(const V& a, const V& b, V& out) {
    out = a * b;
  }
};
struct Min {
  static constexpr bool kSelects = true;
  template <typename V>
  static void Of(const V& a, const V& b, V& out) {
    out = a < b ? a : b;
  }
};
struct Max {
  static constexpr bool kSelects = true;
  template <typename V>
  static void Of(const V& a, const V& b, V& out) {
    out = a > b ? a : b;
  }
};

// Steps of one V (a T, or a vector of them) from byte `at` on, as many as fit. Returns where it
// stopped.
template <typename T, typename Op, typename V>
size_t Steps(std::byte* out, const std::byte* left, const std::byte* right, size_t bytes,
             size_t at) {
  for (; at + sizeof(V) <= bytes; at += sizeof(V)) {
    V a;
    V b;
    V result;
    std::memcpy(&a, left + at, sizeof(V));
    std::memcpy(&b, right + at, sizeof(V));
    Op::Of(a, b, result);
    if constexpr (std::is_floating_point_v<T>) {
      const V nan = V{} + std::numeric_limits<T>::quiet_NaN();
      result = result == result ? result : nan;
      if constexpr (Op::kSelects) result = a == a ? result : nan;
    }
    std::memcpy(out + at, &result, sizeof(V));
  }
  return at;
}

template <typename T, typename Op>
void Apply(std::byte* out, const std::byte* left, const std::byte* right, size_t count) {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  const size_t bytes = count * sizeof(T);
  const size_t at = Steps<T, Op, Vector>(out, left, right, bytes, 0);
  Steps<T, Op, T>(out, left, right, bytes, at);
}

float WidenOne(Float16 value) {
  return ToFloat(value);
}
float WidenOne(BFloat16 value) {
  return ToFloat(value);
}
template <typename T>
auto WidenOne(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<int64_t>(value);
  } else {
    return value;
  }
}

template <typename T, typename Wide>
T NarrowOne(Wide value) {
  if constexpr (std::is_same_v<T, Float16>) {
    return ToFloat16(value);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return ToBFloat16(value);
  } else {
    return static_cast<T>(value);
  }
}

template <typename T, typename Op>
void ApplyWide(std::byte* out, const std::byte* left, const std::byte* right, size_t count) {
  T values[kBlock];
  float a[kBlock];
  float b[kBlock];
  for (size_t at = 0; at < count; at += kBlock) {
    const size_t n = std::min(kBlock, count - at);
    std::memcpy(values, left + at * sizeof(T), n * sizeof(T));
    for (size_t i = 0; i < n; ++i) a[i] = WidenOne(values[i]);
    std::memcpy(values, right + at * sizeof(T), n * sizeof(T));
    for (size_t i = 0; i < n; ++i) b[i] = WidenOne(values[i]);
    auto* bytes = reinterpret_cast<std::byte*>(a);
    Apply<float, Op>(bytes, bytes, reinterpret_cast<std::byte*>(b), n);
    for (size_t i = 0; i < n; ++i) values[i] = NarrowOne<T>(a[i]);
    std::memcpy(out + at * sizeof(T), values, n * sizeof(T));
  }
}

// Calls body(T{}) with the element type's C++ type.
template <typename Body>
void Dispatch(ElementType type, const Body& body) {
  switch (type) {
    case ElementType::kU8:
      return body(uint8_t{});
    case ElementType::kI32:
      return body(int32_t{});
    case ElementType::kI64:
      return body(int64_t{});
    case ElementType::kF16:
      return body(Float16{});
    case ElementType::kBF16:
      return body(BFloat16{});
    case ElementType::kF32:
      return body(float{});
    case ElementType::kF64:
      return body(double{});
  }
}

// `kWraps`: signed overflow is undefined, so such an operation is done on unsigned numbers.
template <typename Op, bool kWraps>
void ApplyTo(ElementType type, std::byte* out, const std::byte* left, const std::byte* right,
             size_t count) {
  Dispatch(type, [&]<typename T>(T) {
    if constexpr (std::is_floating_point_v<T>) {
      Apply<T, Op>(out, left, right, count);
    } else if constexpr (!std::is_integral_v<T>) {
      ApplyWide<T, Op>(out, left, right, count);
    } else if constexpr (kWraps) {
      Apply<std::make_unsigned_t<T>, Op>(out, left, right, count);
    } else {
      Apply<T, Op>(out, left, right, count);
    }
  });
}

}  // namespace

const char* NameOf(Reduction reduction) {
  static constexpr const char* kNames[] = {"sum", "average", "min", "max", "product"};
  return kNames[static_cast<size_t>(reduction)];
}

void Combiner::operator()(std::byte* out, const std::byte* left, const std::byte* right,
                          size_t count) const {
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kAverage:
      return ApplyTo<Sum, true>(type, out, left, right, count);
    case Reduction::kProduct:
      return ApplyTo<Product, true>(type, out, left, right, count);
    case Reduction::kMin:
      return ApplyTo<Min, false>(type, out, left, right, count);
    case Reduction::kMax:
      return ApplyTo<Max, false>(type, out, left, right, count);
  }
}

ElementType WideTypeOf(ElementType type) {
  switch (type) {
    case ElementType::kU8:
    case ElementType::kI32:
      return ElementType::kI64;
    case ElementType::kF16:
    case ElementType::kBF16:
      return ElementType::kF32;
    default:
      return type;
  }
}

void Widen(ConstElements values, Elements wide) {
  RM_CHECK(values.count() == wide.count(), "widened into another length");
  Dispatch(values.type(), [&]<typename T>(T) {
    using Wide = decltype(WidenOne(T{}));
    const auto* from = reinterpret_cast<const T*>(values.data());
    auto* to = reinterpret_cast<Wide*>(wide.data());
    for (size_t i = 0; i < values.count(); ++i) to[i] = WidenOne(from[i]);
  });
}

void DivideAndNarrow(ConstElements wide, int divisor, Elements values) {
  RM_CHECK(values.count() == wide.count(), "narrowed into another length");
  Dispatch(values.type(), [&]<typename T>(T) {
    using Wide = decltype(WidenOne(T{}));
    const auto* from = reinterpret_cast<const Wide*>(wide.data());
    auto* to = reinterpret_cast<T*>(values.data());
    for (size_t i = 0; i < values.count(); ++i)
      to[i] = NarrowOne<T>(from[i] / static_cast<Wide>(divisor));
  });
}

}  // namespace ringmaster::collectives
