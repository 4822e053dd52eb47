#include "runtime/collectives/combine.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <type_traits>

#include "common/check.h"
#include "runtime/collectives/compression/half_convert.h"
#include "runtime/collectives/elementwise.h"

namespace ringmaster::collectives {
namespace {

constexpr size_t kBlock = 256;  // 16-bit floats that are widened at a time
constexpr size_t kInnerBytes = 8192;

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

void WidenBlock(const Float16* values, float* wide, size_t count) {
  FromHalves(values, 1, wide, count);
}
void WidenBlock(const BFloat16* values, float* wide, size_t count) {
  Decode(std::span(values, count), std::span(wide, count));
}
void NarrowBlock(const float* wide, Float16* values, size_t count) {
  ToHalves(wide, 1, values, count);
}
void NarrowBlock(const float* wide, BFloat16* values, size_t count) {
  Encode(std::span(wide, count), std::span(values, count));
}

template <typename T, typename Op>
void ApplyWide(std::byte* out, const std::byte* left, const std::byte* right, size_t count) {
  T values[kBlock];
  float a[kBlock];
  float b[kBlock];
  for (size_t at = 0; at < count; at += kBlock) {
    const size_t n = std::min(kBlock, count - at);
    std::memcpy(values, left + at * sizeof(T), n * sizeof(T));
    WidenBlock(values, a, n);
    std::memcpy(values, right + at * sizeof(T), n * sizeof(T));
    WidenBlock(values, b, n);
    auto* bytes = reinterpret_cast<std::byte*>(a);
    Elementwise<float, Op>(bytes, bytes, reinterpret_cast<std::byte*>(b), n);
    NarrowBlock(a, values, n);
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
      Elementwise<T, Op>(out, left, right, count);
    } else if constexpr (!std::is_integral_v<T>) {
      ApplyWide<T, Op>(out, left, right, count);
    } else if constexpr (kWraps) {
      Elementwise<std::make_unsigned_t<T>, Op>(out, left, right, count);
    } else {
      Elementwise<T, Op>(out, left, right, count);
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

void Combiner::operator()(std::byte* out, const std::byte* outer, const std::byte* left,
                          const std::byte* right, size_t count) const {
  alignas(64) std::byte inner[kInnerBytes];
  const size_t width = SizeOf(type);
  for (size_t at = 0, end = count * width; at < end; at += kInnerBytes) {
    const size_t n = std::min(kInnerBytes, end - at) / width;
    (*this)(inner, left + at, right + at, n);
    (*this)(out + at, outer + at, inner, n);
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

double AverageScale(ElementType type, int count) {
  const bool same_range =
      type == ElementType::kBF16 || type == ElementType::kF32 || type == ElementType::kF64;
  return same_range ? 1.0 / static_cast<double>(std::bit_ceil(static_cast<unsigned>(count))) : 1.0;
}

void Widen(ConstElements values, Elements wide, double scale) {
  RM_CHECK(values.count() == wide.count(), "widened into another length");
  Dispatch(values.type(), [&]<typename T>(T) {
    using Wide = decltype(WidenOne(T{}));
    const auto* from = reinterpret_cast<const T*>(values.data());
    auto* to = reinterpret_cast<Wide*>(wide.data());
    const auto factor = static_cast<Wide>(scale);
    for (size_t i = 0; i < values.count(); ++i) to[i] = WidenOne(from[i]) * factor;
  });
}

void DivideAndNarrow(ConstElements wide, int divisor, Elements values, double scale) {
  RM_CHECK(values.count() == wide.count(), "narrowed into another length");
  Dispatch(values.type(), [&]<typename T>(T) {
    using Wide = decltype(WidenOne(T{}));
    const auto* from = reinterpret_cast<const Wide*>(wide.data());
    auto* to = reinterpret_cast<T*>(values.data());
    const auto factor = static_cast<Wide>(1 / scale);
    for (size_t i = 0; i < values.count(); ++i)
      to[i] = NarrowOne<T>(from[i] / static_cast<Wide>(divisor) * factor);
  });
}

}  // namespace ringmaster::collectives
