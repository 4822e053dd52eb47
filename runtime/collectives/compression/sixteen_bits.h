// Arrays of floats as 16-bit numbers, in bulk: what gradients are compressed to where the same bits
// must come out at every world size.
//
// Two forms, both rounded to the nearest, ties to even, every NaN the quiet one without payload:
//
//   BFloat16   the upper half of a float: its range, 8 bits of precision
//   HalfBlock  kValues halves (IEEE binary16) that share a power of two, which the largest of them
//              chooses: 11 bits of precision for all that is within 2^-28 of it. A half alone
//              overflows from 65520 on and loses what is below 2^-24; a block does neither, so a
//              gradient may be summed over any number of samples and divided at the end.
//
// What a block becomes depends on its own values alone, so arrays must be cut at multiples of
// kValues for the bits not to depend on where. Pure functions; safe from any thread.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_COMPRESSION_SIXTEEN_BITS_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_COMPRESSION_SIXTEEN_BITS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/collectives/element.h"

namespace ringmaster::collectives {

// Value i is halves[i] * 2^exponent. A block that holds a NaN or an infinity has exponent 0; what
// does not fit beside it becomes infinite too.
struct HalfBlock {
  static constexpr size_t kValues = 256;
  int16_t exponent = 0;
  Float16 halves[kValues];
};
static_assert(sizeof(HalfBlock) == 2 + 2 * HalfBlock::kValues);

// How many T hold `count` floats: as many, or as many blocks, the last one filled up with zeros.
template <typename T>
constexpr size_t EncodedCount(size_t count) {
  return count;
}
template <>
constexpr size_t EncodedCount<HalfBlock>(size_t count) {
  return (count + HalfBlock::kValues - 1) / HalfBlock::kValues;
}

// encoded = values. `encoded` has EncodedCount(values.size()).
void Encode(std::span<const float> values, std::span<BFloat16> encoded);
void Encode(std::span<const float> values, std::span<HalfBlock> encoded);

// values = encoded, exactly (an infinity where a block's value is beyond the floats).
void Decode(std::span<const BFloat16> encoded, std::span<float> values);
void Decode(std::span<const HalfBlock> encoded, std::span<float> values);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_COMPRESSION_SIXTEEN_BITS_H_
