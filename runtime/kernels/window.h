// The geometry of convolution and pooling over [N, C, H, W], read from a node. Internal to
// kernels/.
#ifndef RINGMASTER_RUNTIME_KERNELS_WINDOW_H_
#define RINGMASTER_RUNTIME_KERNELS_WINDOW_H_

#include <algorithm>
#include <cstdint>

#include "runtime/kernels/attributes.h"
#include "runtime/tensor/shape.h"

namespace ringmaster::kernels {

struct Range {
  int64_t begin, end;
};

// One axis: output place o sees inputs o * stride - padding + [0, window).
struct Axis {
  int64_t in, out, window, stride, padding;

  // The window's places that fall inside the input, for output o.
  Range Taps(int64_t o) const {
    const int64_t start = o * stride - padding;
    return {std::max<int64_t>(0, -start), std::min(window, in - start)};
  }
  int64_t InputAt(int64_t o, int64_t tap) const { return o * stride - padding + tap; }
};

struct Window {
  Axis h, w;
};

inline Window MakeWindow(const tensor::Shape& in, const tensor::Shape& out, int64_t kh, int64_t kw,
                         const Attributes& attributes) {
  const auto stride = attributes.Ints("stride"), padding = attributes.Ints("padding");
  return {{in.dim(2), out.dim(2), kh, stride[0], padding[0]},
          {in.dim(3), out.dim(3), kw, stride[1], padding[1]}};
}

}  // namespace ringmaster::kernels

#endif  // RINGMASTER_RUNTIME_KERNELS_WINDOW_H_
