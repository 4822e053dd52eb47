#include <algorithm>

#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"
#include "runtime/kernels/window.h"

namespace ringmaster::kernels::reference {
namespace {

// The extents that all three convolution kernels need, from the shapes of x, weight and y. Each
// group of output channels sees a group of input channels of its own.
struct Extents {
  int64_t batch, in_channels, out_channels, in_plane, out_plane, taps;
  int64_t group_in, group_out;  // channels of one group
  Window window;

  Extents(const Shape& x, const Shape& weight, const Shape& y, const Attributes& attributes)
      : batch(x.dim(0)),
        in_channels(x.dim(1)),
        out_channels(y.dim(1)),
        in_plane(x.Product(2, 4)),
        out_plane(y.Product(2, 4)),
        taps(weight.Product(2, 4)),
        group_in(weight.dim(1)),
        group_out(y.dim(1) / attributes.Int("groups")),
        window(MakeWindow(x, y, weight.dim(2), weight.dim(3), attributes)) {}

  // The first input channel that output channel `o` sees.
  int64_t FirstInput(int64_t o) const { return o / group_out * group_in; }
  // The first output channel that sees input channel `c`.
  int64_t FirstOutput(int64_t c) const { return c / group_in * group_out; }
};

// The sum over one window of one channel of x times that channel's weights.
template <typename T>
double WindowDot(const Window& w, const T* x, const T* weight, int64_t oh, int64_t ow) {
  double sum = 0;
  const Range rows = w.h.Taps(oh), columns = w.w.Taps(ow);
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T* from = x + w.h.InputAt(oh, i) * w.w.in;
    for (int64_t j = columns.begin; j < columns.end; ++j) {
      sum += static_cast<double>(from[w.w.InputAt(ow, j)]) *
             static_cast<double>(weight[i * w.w.window + j]);
    }
  }
  return sum;
}

template <typename T>
class Conv2dKernel : public ReferencePrimitive {
 public:
  explicit Conv2dKernel(const NodeSpec& node)
      : e_(InShape(node, 0), InShape(node, 1), OutShape(node, 0), node.attributes),
        has_bias_(node.inputs.size() == 3),
        relu_(node.attributes.Int("relu") != 0) {}

  void Run(const Arguments& a) override {
    const T *x = a.in<T>(0), *weight = a.in<T>(1), *bias = has_bias_ ? a.in<T>(2) : nullptr;
    T* y = a.out<T>(0);
    ParallelFor(
        e_.batch * e_.out_channels, e_.out_plane * e_.group_in * e_.taps, [&](int64_t plane) {
          const int64_t n = plane / e_.out_channels, o = plane % e_.out_channels;
          RunPlane(x + (n * e_.in_channels + e_.FirstInput(o)) * e_.in_plane,
                   weight + o * e_.group_in * e_.taps,
                   bias != nullptr ? static_cast<double>(bias[o]) : 0.0, y + plane * e_.out_plane);
        });
  }

 private:
  void RunPlane(const T* x, const T* weight, double bias, T* y) const {
    for (int64_t oh = 0; oh < e_.window.h.out; ++oh) {
      for (int64_t ow = 0; ow < e_.window.w.out; ++ow) {
        double sum = bias;
        for (int64_t c = 0; c < e_.group_in; ++c) {
          sum += WindowDot(e_.window, x + c * e_.in_plane, weight + c * e_.taps, oh, ow);
        }
        const T result = static_cast<T>(sum);
        *y++ = relu_ ? ReluBody()(result) : result;
      }
    }
  }

  Extents e_;
  bool has_bias_;
  bool relu_;
};

// Scatters dy through the weights. One task owns one channel of one sample's dx. With x, which a
// ReLU made, dx is 0 where that is not positive.
template <typename T>
class Conv2dGradInputKernel : public ReferencePrimitive {
 public:
  explicit Conv2dGradInputKernel(const NodeSpec& node)
      : e_(OutShape(node, 0), InShape(node, 1), InShape(node, 0), node.attributes),
        has_x_(node.inputs.size() == 3) {}

  void Run(const Arguments& a) override {
    const T *dy = a.in<T>(0), *weight = a.in<T>(1), *x = has_x_ ? a.in<T>(2) : nullptr;
    T* dx = a.out<T>(0);
    ParallelFor(e_.batch * e_.in_channels, e_.out_plane * e_.group_out * e_.taps,
                [&](int64_t plane) {
                  const int64_t n = plane / e_.in_channels, c = plane % e_.in_channels;
                  T* to = dx + plane * e_.in_plane;
                  std::fill_n(to, e_.in_plane, T(0));
                  const int64_t first = e_.FirstOutput(c);
                  for (int64_t o = first; o < first + e_.group_out; ++o) {
                    Scatter(dy + (n * e_.out_channels + o) * e_.out_plane,
                            weight + (o * e_.group_in + c % e_.group_in) * e_.taps, to);
                  }
                  if (x == nullptr) return;
                  const T* from = x + plane * e_.in_plane;
                  for (int64_t i = 0; i < e_.in_plane; ++i) to[i] = ReluGradBody()(from[i], to[i]);
                });
  }

 private:
  void Scatter(const T* dy, const T* weight, T* dx) const {
    const Window& w = e_.window;
    for (int64_t oh = 0; oh < w.h.out; ++oh) {
      const Range rows = w.h.Taps(oh);
      for (int64_t ow = 0; ow < w.w.out; ++ow) {
        const Range columns = w.w.Taps(ow);
        const T g = dy[oh * w.w.out + ow];
        for (int64_t i = rows.begin; i < rows.end; ++i) {
          T* to = dx + w.h.InputAt(oh, i) * w.w.in;
          for (int64_t j = columns.begin; j < columns.end; ++j) {
            to[w.w.InputAt(ow, j)] += g * weight[i * w.w.window + j];
          }
        }
      }
    }
  }

  Extents e_;
  bool has_x_;
};

// One task owns the weights between one input and one output channel.
template <typename T>
class Conv2dGradWeightKernel : public ReferencePrimitive {
 public:
  explicit Conv2dGradWeightKernel(const NodeSpec& node)
      : e_(InShape(node, 0), OutShape(node, 0), InShape(node, 1), node.attributes) {}

  void Run(const Arguments& a) override {
    const T *x = a.in<T>(0), *dy = a.in<T>(1);
    T* dw = a.out<T>(0);
    ParallelFor(e_.out_channels * e_.group_in, e_.batch * e_.out_plane * e_.taps,
                [&](int64_t pair) {
                  const int64_t o = pair / e_.group_in;
                  const int64_t c = e_.FirstInput(o) + pair % e_.group_in;
                  for (int64_t tap = 0; tap < e_.taps; ++tap) {
                    double sum = 0;
                    for (int64_t n = 0; n < e_.batch; ++n) {
                      sum += TapDot(x + (n * e_.in_channels + c) * e_.in_plane,
                                    dy + (n * e_.out_channels + o) * e_.out_plane, tap);
                    }
                    dw[pair * e_.taps + tap] = static_cast<T>(sum);
                  }
                });
  }

 private:
  double TapDot(const T* x, const T* dy, int64_t tap) const {
    const Window& w = e_.window;
    const int64_t i = tap / w.w.window, j = tap % w.w.window;
    double sum = 0;
    for (int64_t oh = 0; oh < w.h.out; ++oh) {
      const int64_t ih = w.h.InputAt(oh, i);
      if (ih < 0 || ih >= w.h.in) continue;
      for (int64_t ow = 0; ow < w.w.out; ++ow) {
        const int64_t iw = w.w.InputAt(ow, j);
        if (iw < 0 || iw >= w.w.in) continue;
        sum +=
            static_cast<double>(x[ih * w.w.in + iw]) * static_cast<double>(dy[oh * w.w.out + ow]);
      }
    }
    return sum;
  }

  Extents e_;
};

}  // namespace

std::unique_ptr<Primitive> Conv2d(const NodeSpec& node) {
  return MakeReal<Conv2dKernel>(node);
}
std::unique_ptr<Primitive> Conv2dGradInput(const NodeSpec& node) {
  return MakeReal<Conv2dGradInputKernel>(node);
}
std::unique_ptr<Primitive> Conv2dGradWeight(const NodeSpec& node) {
  return MakeReal<Conv2dGradWeightKernel>(node);
}

}  // namespace ringmaster::kernels::reference
