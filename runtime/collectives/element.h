// The elements that the operations move and combine: their types, and arrays whose type is known at
// run time.
//
//   std::vector<float> in, out;
//   comm.Allreduce(Reduction::kSum, in, out, "conv1/weight");         // any contiguous range
//   comm.Broadcast(0, Elements(ElementType::kF16, bytes), "weights"); // or bytes and a type
//
// Views: they own nothing, and what they show must outlive the call that they are passed to.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ELEMENT_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ELEMENT_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

namespace ringmaster::collectives {

enum class ElementType : uint8_t { kU8, kI32, kI64, kF16, kBF16, kF32, kF64 };

namespace internal {
// Sizes are powers of two, and a division takes as long as a few numbers do through shared memory.
inline constexpr uint8_t kLogOfSize[] = {0, 2, 3, 1, 1, 2, 3};
}  // namespace internal

// Bytes of one.
constexpr size_t SizeOf(ElementType type) {
  return size_t{1} << internal::kLogOfSize[static_cast<size_t>(type)];
}

// How many whole elements so many bytes hold.
constexpr size_t CountIn(size_t bytes, ElementType type) {
  return bytes >> internal::kLogOfSize[static_cast<size_t>(type)];
}

// "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64".
const char* NameOf(ElementType type);

// IEEE binary16, and the upper half of a binary32. Storage only: arithmetic is done in float, and
// rounded to the nearest, ties to even. NaN becomes the quiet NaN without payload.
struct Float16 {
  uint16_t bits = 0;
};
struct BFloat16 {
  uint16_t bits = 0;
};
float ToFloat(Float16 value);
float ToFloat(BFloat16 value);
Float16 ToFloat16(float value);
BFloat16 ToBFloat16(float value);

namespace internal {
template <typename T, typename... Types>
constexpr bool kIsOneOf = (std::is_same_v<T, Types> || ...);
}

template <typename T>
concept Element =
    internal::kIsOneOf<T, std::byte, uint8_t, int32_t, int64_t, Float16, BFloat16, float, double>;

// std::byte is kU8.
template <Element T>
constexpr ElementType ElementTypeOf() {
  if constexpr (sizeof(T) == 1) return ElementType::kU8;
  if constexpr (std::is_same_v<T, int32_t>) return ElementType::kI32;
  if constexpr (std::is_same_v<T, int64_t>) return ElementType::kI64;
  if constexpr (std::is_same_v<T, Float16>) return ElementType::kF16;
  if constexpr (std::is_same_v<T, BFloat16>) return ElementType::kBF16;
  if constexpr (std::is_same_v<T, float>) return ElementType::kF32;
  if constexpr (std::is_same_v<T, double>) return ElementType::kF64;
}

// An array of one of the types above: Byte is std::byte where it may be written to, else const
// std::byte.
template <typename Byte>
class BasicElements {
 public:
  BasicElements() = default;  // no bytes

  // `bytes` must hold whole elements, aligned for their type.
  BasicElements(ElementType type, std::span<Byte> bytes)
      : type_(type), data_(bytes.data()), count_(CountIn(bytes.size(), type)) {}

  template <typename T>
  requires Element<std::remove_const_t<T>> BasicElements(T* data, size_t count)
      : type_(ElementTypeOf<std::remove_const_t<T>>()),
        data_(reinterpret_cast<Byte*>(data)),
        count_(count) {}

  template <std::ranges::contiguous_range Range>
  requires Element<std::ranges::range_value_t<Range>> BasicElements(Range&& range)
      : BasicElements(
            ElementTypeOf<std::ranges::range_value_t<Range>>(),
            std::span<Byte>(reinterpret_cast<Byte*>(std::ranges::data(range)),
                            std::ranges::size(range) * sizeof(std::ranges::range_value_t<Range>))) {
  }

  // What may be written to may be read.
  operator BasicElements<const std::byte>() const requires(!std::is_const_v<Byte>) {
    return {type_, bytes()};
  }

  ElementType type() const { return type_; }
  size_t count() const { return count_; }
  size_t element_bytes() const { return SizeOf(type_); }
  Byte* data() const { return data_; }
  std::span<Byte> bytes() const { return {data_, count_ * element_bytes()}; }
  BasicElements Slice(size_t offset, size_t count) const {
    return {type_, bytes().subspan(offset * element_bytes(), count * element_bytes())};
  }

 private:
  ElementType type_ = ElementType::kU8;
  Byte* data_ = nullptr;
  size_t count_ = 0;
};

using ConstElements = BasicElements<const std::byte>;
using Elements = BasicElements<std::byte>;

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ELEMENT_H_
