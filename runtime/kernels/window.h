// The geometry of convolution and pooling over [N, C, H, W], read from a node. Internal to
// kernels/.
#ifndef RINGMASTER_RUNTIME_KERNELS_WINDOW_H_
#define RINGMASTER_RUNTIME_KERNELS_WINDOW_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/kernels/attributes.h"
#include "runtime/tensor/shape.h"

namespace ringmaster::kernels {

struct Range {
  int64_t begin, end;

  int64_t size() const { return end - begin; }
};

// One axis: tap t of output place o sees input o * stride - padding + t * dilation.
struct Axis {
  int64_t in, out, window, stride, padding, dilation;

  // The window's taps that fall inside the input, for output o.
  Range Taps(int64_t o) const {
    const int64_t start = o * stride - padding;
    const int64_t begin = start < 0 ? (-start + dilation - 1) / dilation : 0;
    const int64_t end = in > start ? (in - start + dilation - 1) / dilation : 0;
    return {begin, std::min(window, end)};
  }
  int64_t InputAt(int64_t o, int64_t tap) const { return o * stride - padding + tap * dilation; }
};

// The places of an axis of `in` that place o of `out` is of in adaptive pooling.
inline Range AdaptivePlaces(int64_t o, int64_t in, int64_t out) {
  return {o * in / out, ((o + 1) * in + out - 1) / out};
}

struct Window {
  Axis h, w;
};

inline Window MakeWindow(const tensor::Shape& in, const tensor::Shape& out, int64_t kh, int64_t kw,
                         const Attributes& attributes) {
  const auto stride = attributes.Ints("stride"), padding = attributes.Ints("padding");
  std::vector<int64_t> dilation = attributes.Ints("dilation");
  if (dilation.empty()) dilation = {1, 1};  // pooling has none
  return {{in.dim(2), out.dim(2), kh, stride[0], padding[0], dilation[0]},
          {in.dim(3), out.dim(3), kw, stride[1], padding[1], dilation[1]}};
}

// What a convolution without groups makes of x.
inline tensor::Shape ConvolvedShape(const tensor::Shape& x, const tensor::Shape& weight,
                                    const Attributes& attributes) {
  const auto stride = attributes.Ints("stride"), padding = attributes.Ints("padding"),
             dilation = attributes.Ints("dilation");
  const auto extent = [&](int axis) {
    const auto i = static_cast<size_t>(axis - 2);
    const int64_t apart = dilation.empty() ? 1 : dilation[i];
    return (x.dim(axis) + 2 * padding[i] - 1 - (weight.dim(axis) - 1) * apart) / stride[i] + 1;
  };
  return {x.dim(0), weight.dim(0), extent(2), extent(3)};
}

// A node whose result is max-pooled at once has the attributes of both; the pooling's are called
// pool_window, pool_stride and pool_padding there.
inline Attributes WithPooling(const Attributes& before, const Attributes& pooling) {
  Attributes both = before;
  for (const char* name : {"window", "stride", "padding"})
    both = both.With(std::string("pool_") + name, pooling.Ints(name));
  return both;
}
inline Attributes PoolingOf(const Attributes& both) {
  return {{"window", both.Ints("pool_window")},
          {"stride", both.Ints("pool_stride")},
          {"padding", both.Ints("pool_padding")}};
}

}  // namespace ringmaster::kernels

#endif  // RINGMASTER_RUNTIME_KERNELS_WINDOW_H_
