// The transforms of Winograd's convolution, sixteen or eight of them side by side. Internal to this
// folder.
//
// Along one axis, kTaps weights over 6 pixels give m = 7 - kTaps results. All three are
// polynomials' coefficients, and a product of polynomials is found by its values at six points
// (Toom and Cook; Winograd: "Arithmetic complexity of computations", 1980; for networks Lavin and
// Gray: "Fast algorithms for convolutional neural networks", 2016): as matrices, y = A^T ((G g)
// (B^T d)), where G, B and A depend on the points alone. Two axes are two transforms, one after the
// other. The points are 0, infinity and plus and minus 5/8 and 3/2, as in oneDNN: at these a result
// of 5 x 5 weights is as near to the exact one as the sum of the products itself is, and of 3 x 3
// weights about as near. With 1 and 2 instead it is two to three times as far off.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_TRANSFORMS_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_TRANSFORMS_H_

#include <cstdint>

#include "runtime/kernels/vector/product.h"

namespace ringmaster::kernels::vector {

// The points along one axis, and so the side of a tile of the image.
inline constexpr int64_t kPoints = 6;
// Of a whole tile.
inline constexpr int64_t kSquarePoints = kPoints * kPoints;

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
// For windows of 3 x 3, in eight lanes.
const WinogradTransforms& WinogradTransformsOfEight();

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_TRANSFORMS_H_
