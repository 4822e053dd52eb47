// The transforms of Winograd's convolution, sixteen or eight of them side by side. Internal to this
// folder.
//
// Along one axis, kTaps weights over kTaps + 3 pixels give 4 results. All three are polynomials'
// coefficients, and a product of polynomials is found by its values at as many points as there are
// pixels (Toom and Cook; Winograd: "Arithmetic complexity of computations", 1980; for networks
// Lavin and Gray: "Fast algorithms for convolutional neural networks", 2016): as matrices, y = A^T
// ((G g) (B^T d)), where G, B and A depend on the points alone. Two axes are two transforms, one
// after the other.
//
// Of 3 x 3 weights the points are 0, infinity and plus and minus 5/8 and 3/2, as in oneDNN: at
// these a result is about as near to the exact one as the sum of the products itself is; with 1 and
// 2 instead it is two to three times as far off. Of 5 x 5 weights they are plus and minus 1/2, 1
// and 2, whose powers are exact; of 3,653 others, eighths and small fractions, none was nearer
// in all three directions.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_TRANSFORMS_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_TRANSFORMS_H_

#include <cstdint>

#include "runtime/kernels/vector/product.h"

namespace ringmaster::kernels::vector {

// Results of a tile along one axis.
inline constexpr int64_t kTileSide = 4;
// The points along one axis, and so the side of a tile of the image, for windows of `taps` x
// `taps`.
constexpr int64_t PointsOf(int64_t taps) {
  return kTileSide + taps - 1;
}
// Of a whole tile.
constexpr int64_t SquarePointsOf(int64_t taps) {
  return PointsOf(taps) * PointsOf(taps);
}

// Transforms a square in each lane along both axes. Of lane l, element (i, j) is from[i *
// strides.row + j * strides.column + l]; the result's lie row by row, `step` apart.
using WinogradTransform = void (*)(const float* from, Strides strides, float* to, int64_t step);

// All of one size of window.
struct WinogradTransforms {
  WinogradTransform image, image_grad, weight, weight_grad, result, result_grad;
};

// For windows of `taps` x `taps`, 3 or 5, in sixteen lanes; with the vectors that products use
// (UseWideTiles), which changes no bit.
const WinogradTransforms& WinogradTransformsFor(int64_t taps);
// For the same windows in eight lanes.
const WinogradTransforms& WinogradTransformsOfEight(int64_t taps);

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_TRANSFORMS_H_
