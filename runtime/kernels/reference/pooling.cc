#include <algorithm>
#include <limits>

#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"
#include "runtime/kernels/window.h"

namespace ringmaster::kernels::reference {
namespace {

// Calls body(input plane index, output plane index) for each channel of each sample, and in it
// each(oh, ow) for each output place: what all pooling kernels have in common.
class PoolKernel : public ReferencePrimitive {
 protected:
  PoolKernel(const Shape& in, const Shape& out, const Attributes& attributes)
      : planes_(in.Product(0, 2)), in_plane_(in.Product(2, 4)), out_plane_(out.Product(2, 4)) {
    const auto window = attributes.Ints("window");
    w_ = MakeWindow(in, out, window[0], window[1], attributes);
  }

  template <typename Body>
  void ForPlanes(const Body& body) const {
    ParallelFor(planes_, out_plane_ * w_.h.window * w_.w.window, body);
  }

  template <typename Body>
  void ForPlaces(const Body& body) const {
    for (int64_t oh = 0; oh < w_.h.out; ++oh) {
      for (int64_t ow = 0; ow < w_.w.out; ++ow) body(oh, ow);
    }
  }

  // Calls body(place in the input plane) for each input under the window, in row order.
  template <typename Body>
  void ForTaps(int64_t oh, int64_t ow, const Body& body) const {
    const Range rows = w_.h.Taps(oh), columns = w_.w.Taps(ow);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        body(w_.h.InputAt(oh, i) * w_.w.in + w_.w.InputAt(ow, j));
      }
    }
  }

  // Where the window's largest input is; the first of equals, or the first NaN.
  template <typename T>
  int64_t Largest(const T* x, int64_t oh, int64_t ow) const {
    int64_t best = -1;
    ForTaps(oh, ow, [&](int64_t at) {
      if (best < 0 || x[at] > x[best] || (x[at] != x[at] && x[best] == x[best])) best = at;
    });
    return best;
  }

  int64_t planes_, in_plane_, out_plane_;
  Window w_;
};

template <typename T>
class MaxPoolKernel : public PoolKernel {
 public:
  explicit MaxPoolKernel(const NodeSpec& node)
      : PoolKernel(InShape(node, 0), OutShape(node, 0), node.attributes) {}
  void Run(const Arguments& a) override {
    ForPlanes([&](int64_t plane) {
      const T* x = a.in<T>(0) + plane * in_plane_;
      T* y = a.out<T>(0) + plane * out_plane_;
      ForPlaces([&](int64_t oh, int64_t ow) { *y++ = x[Largest(x, oh, ow)]; });
    });
  }
};

template <typename T>
class MaxPoolGradKernel : public PoolKernel {
 public:
  explicit MaxPoolGradKernel(const NodeSpec& node)
      : PoolKernel(InShape(node, 0), InShape(node, 1), node.attributes) {}
  void Run(const Arguments& a) override {
    ForPlanes([&](int64_t plane) {
      const T *x = a.in<T>(0) + plane * in_plane_, *dy = a.in<T>(1) + plane * out_plane_;
      T* dx = a.out<T>(0) + plane * in_plane_;
      std::fill_n(dx, in_plane_, T(0));
      ForPlaces([&](int64_t oh, int64_t ow) { dx[Largest(x, oh, ow)] += *dy++; });
    });
  }
};

template <typename T>
class AvgPoolKernel : public PoolKernel {
 public:
  explicit AvgPoolKernel(const NodeSpec& node)
      : PoolKernel(InShape(node, 0), OutShape(node, 0), node.attributes) {}
  void Run(const Arguments& a) override {
    const double share = 1.0 / static_cast<double>(w_.h.window * w_.w.window);
    ForPlanes([&](int64_t plane) {
      const T* x = a.in<T>(0) + plane * in_plane_;
      T* y = a.out<T>(0) + plane * out_plane_;
      ForPlaces([&](int64_t oh, int64_t ow) {
        double sum = 0;
        ForTaps(oh, ow, [&](int64_t at) { sum += static_cast<double>(x[at]); });
        *y++ = static_cast<T>(sum * share);
      });
    });
  }
};

template <typename T>
class AvgPoolGradKernel : public PoolKernel {
 public:
  explicit AvgPoolGradKernel(const NodeSpec& node)
      : PoolKernel(OutShape(node, 0), InShape(node, 0), node.attributes) {}
  void Run(const Arguments& a) override {
    const T share = T(1) / static_cast<T>(w_.h.window * w_.w.window);
    ForPlanes([&](int64_t plane) {
      const T* dy = a.in<T>(0) + plane * out_plane_;
      T* dx = a.out<T>(0) + plane * in_plane_;
      std::fill_n(dx, in_plane_, T(0));
      ForPlaces([&](int64_t oh, int64_t ow) {
        const T part = *dy++ * share;
        ForTaps(oh, ow, [&](int64_t at) { dx[at] += part; });
      });
    });
  }
};

}  // namespace

std::unique_ptr<Primitive> MaxPool2d(const NodeSpec& node) {
  return MakeReal<MaxPoolKernel>(node);
}
std::unique_ptr<Primitive> MaxPool2dGrad(const NodeSpec& node) {
  return MakeReal<MaxPoolGradKernel>(node);
}
std::unique_ptr<Primitive> AvgPool2d(const NodeSpec& node) {
  return MakeReal<AvgPoolKernel>(node);
}
std::unique_ptr<Primitive> AvgPool2dGrad(const NodeSpec& node) {
  return MakeReal<AvgPoolGradKernel>(node);
}

}  // namespace ringmaster::kernels::reference
