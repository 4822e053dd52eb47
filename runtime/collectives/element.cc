#include "runtime/collectives/element.h"

#include <bit>

namespace ringmaster::collectives {

const char* NameOf(ElementType type) {
  static constexpr const char* kNames[] = {"uint8",    "int32",   "int64",  "float16",
                                           "bfloat16", "float32", "float64"};
  return kNames[static_cast<size_t>(type)];
}

float ToFloat(BFloat16 value) {
  return std::bit_cast<float>(uint32_t{value.bits} << 16);
}

BFloat16 ToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) return {0x7fc0};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

// A half's exponent and fraction, put where a float has them, are its value divided by 2^112,
// subnormal halves too.
float ToFloat(Float16 value) {
  const uint32_t sign = uint32_t{value.bits & 0x8000u} << 16;
  const uint32_t rest = value.bits & 0x7fffu;
  const float scaled = std::bit_cast<float>(rest << 13) * 0x1p112f;
  const uint32_t magnitude =
      rest >= 0x7c00 ? 0x7f800000 | rest << 13 : std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(sign | magnitude);
}

Float16 ToFloat16(float value) {
  constexpr uint32_t kInfinity = 0x7f800000;
  constexpr uint32_t kRoundsToInfinity = 0x477ff000;  // 65520: half way beyond the largest half
  constexpr uint32_t kSmallestNormal = 0x38800000;    // 2^-14
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  uint32_t half = 0;
  if (magnitude > kInfinity) return {0x7e00};
  if (magnitude >= kRoundsToInfinity) {
    half = 0x7c00;
  } else if (magnitude < kSmallestNormal) {
    // The last place of 0.5 is that of a subnormal half, so that the addition rounds.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<uint32_t>(rounded) - std::bit_cast<uint32_t>(0.5f);
  } else {
    half = (magnitude - (uint32_t{112} << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  }
  return {static_cast<uint16_t>(sign | half)};
}

}  // namespace ringmaster::collectives
