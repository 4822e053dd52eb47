// Parts of f32 matrices as a processor's matrix unit takes them (split_product.h). Internal to this
// folder.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_SPLIT_PACK_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_SPLIT_PACK_H_

#include <algorithm>
#include <cstdint>

namespace ringmaster::kernels::vector {

// Where the elements along an axis lie: how far apart neighbours are, how far each sixteenth is
// from the one before, which is 16 times that but where the axis is cut into blocks, and how far
// apart groups are.
struct SplitAxis {
  int64_t step = 0;
  int64_t sixteen = 16 * step;
  int64_t group = 0;

  int64_t At(int64_t i) const { return i / 16 * sixteen + i % 16 * step; }
};

// Rows of A and columns of B come in strips of two tiles, whose inner axis goes in steps of a
// tile's.
inline constexpr int64_t kSplitTileLines = 16, kSplitStrip = 2 * kSplitTileLines, kSplitStep = 32;
// A step has the two tiles of each part, the largest part first.
inline constexpr int64_t kSplitParts = 3;
inline constexpr int64_t kSplitTileBytes = 1024, kSplitRowBytes = 64;
inline constexpr int64_t kSplitPartBytes = 2 * kSplitTileBytes,
                         kSplitStepBytes = kSplitParts * kSplitPartBytes;

// A mask of the first `count` of sixteen floats: none where it is negative, all where it is more.
inline uint16_t FirstOfSixteen(int64_t count) {
  return static_cast<uint16_t>((1U << std::clamp<int64_t>(count, 0, 16)) - 1);
}

// Lines of A or of B: its rows, or its columns, from `data` on.
struct SplitSide {
  const float* data;
  SplitAxis lines, inner;
};

// A step's tiles of `lines` lines and `k` of the inner axis, at most a strip and a step, with zeros
// for what is not there, at `to`, kSplitStepBytes of them, aligned to 64 bytes. A pair is of an
// element of the step's first half and its like in the second. In a tile, rows are A's lines and
// columns pairs, of B the other way round. For processors with AVX-512.
void PackSplitStep(const SplitSide& side, int64_t lines, int64_t k, bool is_a, char* to);

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_SPLIT_PACK_H_
