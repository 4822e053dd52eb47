#include "runtime/collectives/compression/sixteen_bits.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/collectives/compression/half_convert.h"

namespace ringmaster::collectives {
namespace {

constexpr uint32_t kMagnitude = 0x7fffffff;
constexpr uint32_t kInfinity = 0x7f800000;
constexpr int kBias = 127;
constexpr int kFractionBits = 23;

// The largest of a block is brought to [2^14, 2^15): rounding up cannot leave the halves' range.
constexpr int kLargestAt = 14;
// The powers of two that are floats, and whose inverses are.
constexpr int kLeastExponent = -126;

float PowerOfTwo(int exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + kBias) << kFractionBits);
}

// Explicit vectors, because at -O2 the compiler makes none of its own here.
constexpr size_t kLanes = 4;
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef uint16_t Shorts __attribute__((vector_size(2 * kLanes)));

template <typename Vector>
Vector Load(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}

// The bits of the largest magnitude; more than kInfinity where there is a NaN.
uint32_t LargestMagnitude(const float* values) {
  Words largest{};
  for (size_t i = 0; i < HalfBlock::kValues; i += kLanes) {
    const Words bits = Load<Words>(values + i) & kMagnitude;
    largest = bits > largest ? bits : largest;
  }
  uint32_t result = 0;
  for (size_t i = 0; i < kLanes; ++i) result = std::max(result, largest[i]);
  return result;
}

int ExponentFor(uint32_t largest) {
  if (largest == 0 || largest >= kInfinity) return 0;
  const int exponent = static_cast<int>(largest >> kFractionBits) - kBias - kLargestAt;
  return std::max(exponent, kLeastExponent);
}

}  // namespace

void EncodeBlock(const float* values, HalfBlock* block) {
  const int exponent = ExponentFor(LargestMagnitude(values));
  block->exponent = static_cast<int16_t>(exponent);
  ToHalves(values, PowerOfTwo(-exponent), block->halves, HalfBlock::kValues);
}

void DecodeBlock(const HalfBlock& block, float* values) {
  // What arrives from a peer may be anything; no exponent of ours is out of these bounds.
  const int exponent = std::clamp<int>(block.exponent, kLeastExponent, kBias);
  FromHalves(block.halves, PowerOfTwo(exponent), values, HalfBlock::kValues);
}

void Encode(std::span<const float> values, std::span<HalfBlock> encoded) {
  size_t done = 0;
  size_t block = 0;
  for (; done + HalfBlock::kValues <= values.size(); done += HalfBlock::kValues)
    EncodeBlock(values.data() + done, &encoded[block++]);
  if (done == values.size()) return;
  float rest[HalfBlock::kValues] = {};
  std::copy(values.begin() + static_cast<std::ptrdiff_t>(done), values.end(), rest);
  EncodeBlock(rest, &encoded[block]);
}

void Decode(std::span<const HalfBlock> encoded, std::span<float> values) {
  size_t done = 0;
  size_t block = 0;
  for (; done + HalfBlock::kValues <= values.size(); done += HalfBlock::kValues)
    DecodeBlock(encoded[block++], values.data() + done);
  if (done == values.size()) return;
  float rest[HalfBlock::kValues];
  DecodeBlock(encoded[block], rest);
  std::copy_n(rest, values.size() - done, values.data() + done);
}

void Encode(std::span<const float> values, std::span<BFloat16> encoded) {
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    const Words bits = Load<Words>(&values[i]);
    const Words rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const Words quiet = Words{} + 0x7fc0;
    const Words upper = (bits & kMagnitude) > kInfinity ? quiet : rounded;
    const Shorts shorts = __builtin_convertvector(upper, Shorts);
    std::memcpy(&encoded[i].bits, &shorts, sizeof(shorts));
  }
  for (; i < values.size(); ++i) encoded[i] = ToBFloat16(values[i]);
}

void Decode(std::span<const BFloat16> encoded, std::span<float> values) {
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    const Words bits = __builtin_convertvector(Load<Shorts>(&encoded[i]), Words) << 16;
    std::memcpy(&values[i], &bits, sizeof(bits));
  }
  for (; i < values.size(); ++i) values[i] = ToFloat(encoded[i]);
}

}  // namespace ringmaster::collectives
