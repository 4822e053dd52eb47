// Element types of tensors.
#ifndef RINGMASTER_RUNTIME_TENSOR_DTYPE_H_
#define RINGMASTER_RUNTIME_TENSOR_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringmaster::tensor {

// kF32 is what training computes in; kF64 serves gradient checks; kI32 holds labels and tokens;
// kBF16 is storage only (no CPU kernel takes it); kU8 holds places within a window.
enum class DType : uint8_t { kF32, kF64, kI32, kBF16, kU8 };

// Bytes per element.
size_t SizeOf(DType dtype);

// "f32", "f64", "i32", "bf16", "u8".
std::string_view Name(DType dtype);

// The DType of a C++ type: DTypeOf<float>() is kF32.
template <typename T>
constexpr DType DTypeOf();
template <>
constexpr DType DTypeOf<float>() {
  return DType::kF32;
}
template <>
constexpr DType DTypeOf<double>() {
  return DType::kF64;
}
template <>
constexpr DType DTypeOf<int32_t>() {
  return DType::kI32;
}
template <>
constexpr DType DTypeOf<uint8_t>() {
  return DType::kU8;
}

}  // namespace ringmaster::tensor

#endif  // RINGMASTER_RUNTIME_TENSOR_DTYPE_H_
