// Halves to floats and back, times a power of two, with the processor's own instructions where it
// has them (F16C); the same bits either way. For compression/, where HalfBlock is the way to them,
// and for combining.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_COMPRESSION_HALF_CONVERT_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_COMPRESSION_HALF_CONVERT_H_

#include <cstddef>

#include "runtime/collectives/compression/sixteen_bits.h"
#include "runtime/collectives/element.h"

namespace ringmaster::collectives {

// halves[i] = values[i] * scale, rounded; a NaN becomes the quiet one without payload.
void ToHalves(const float* values, float scale, Float16* halves, size_t count);
// values[i] = halves[i] * scale.
void FromHalves(const Float16* halves, float scale, float* values, size_t count);

// The same without those instructions, for comparison in tests.
void ToHalvesPortably(const float* values, float scale, Float16* halves, size_t count);
void FromHalvesPortably(const Float16* halves, float scale, float* values, size_t count);

// One block; `values` has HalfBlock::kValues.
void EncodeBlock(const float* values, HalfBlock* block);
void DecodeBlock(const HalfBlock& block, float* values);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_COMPRESSION_HALF_CONVERT_H_
