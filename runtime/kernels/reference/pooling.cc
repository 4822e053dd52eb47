#include <algorithm>
#include <limits>

#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"
#include "runtime/kernels/window.h"

namespace ringmaster::kernels::reference {
namespace {

// Whether a maximum takes `value` instead of what it has so far: the first of equals stays, and
// what is no number is never lost.
template <typename T>
bool IsLarger(T value, T best) {
  return value > best || (value != value && best == best);
}

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

  // How many elements the mean of a window counts.
  double Elements(bool count_padding, int64_t oh, int64_t ow) const {
    if (count_padding) return static_cast<double>(w_.h.window * w_.w.window);
    const Range rows = w_.h.Taps(oh), columns = w_.w.Taps(ow);
    return static_cast<double>((rows.end - rows.begin) * (columns.end - columns.begin));
  }

  // Where the window's largest input is; the first of equals, or the first NaN.
  template <typename T>
  int64_t Largest(const T* x, int64_t oh, int64_t ow) const {
    int64_t best = -1;
    ForTaps(oh, ow, [&](int64_t at) {
      if (best < 0 || IsLarger(x[at], x[best])) best = at;
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

// (x) -> (y, taps): of each pixel of y, which place of its window it came from.
template <typename T>
class MaxPoolTapsKernel : public PoolKernel {
 public:
  explicit MaxPoolTapsKernel(const NodeSpec& node)
      : PoolKernel(InShape(node, 0), OutShape(node, 0), node.attributes) {}
  void Run(const Arguments& a) override {
    ForPlanes([&](int64_t plane) {
      const T* x = a.in<T>(0) + plane * in_plane_;
      T* y = a.out<T>(0) + plane * out_plane_;
      auto* taps = a.out<uint8_t>(1) + plane * out_plane_;
      ForPlaces([&](int64_t oh, int64_t ow) {
        const int64_t at = Largest(x, oh, ow);
        *y++ = x[at];
        *taps++ = static_cast<uint8_t>((at / w_.w.in - w_.h.InputAt(oh, 0)) * w_.w.window +
                                       at % w_.w.in - w_.w.InputAt(ow, 0));
      });
    });
  }
};

// (dy, taps) -> dx
template <typename T>
class MaxPoolTapsGradKernel : public PoolKernel {
 public:
  explicit MaxPoolTapsGradKernel(const NodeSpec& node)
      : PoolKernel(OutShape(node, 0), InShape(node, 0), node.attributes) {}
  void Run(const Arguments& a) override {
    ForPlanes([&](int64_t plane) {
      const T* dy = a.in<T>(0) + plane * out_plane_;
      const auto* taps = a.in<uint8_t>(1) + plane * out_plane_;
      T* dx = a.out<T>(0) + plane * in_plane_;
      std::fill_n(dx, in_plane_, T(0));
      ForPlaces([&](int64_t oh, int64_t ow) {
        const int64_t tap = *taps++;
        const int64_t row = w_.h.InputAt(oh, tap / w_.w.window),
                      column = w_.w.InputAt(ow, tap % w_.w.window);
        const T gradient = *dy++;
        // Others than MaxPoolTapsKernel makes must not reach memory beyond the image either.
        if (row >= 0 && row < w_.h.in && column >= 0 && column < w_.w.in)
          dx[row * w_.w.in + column] += gradient;
      });
    });
  }
};

template <typename T>
class AvgPoolKernel : public PoolKernel {
 public:
  explicit AvgPoolKernel(const NodeSpec& node)
      : PoolKernel(InShape(node, 0), OutShape(node, 0), node.attributes),
        count_padding_(node.attributes.Int("count_padding") != 0) {}
  void Run(const Arguments& a) override {
    ForPlanes([&](int64_t plane) {
      const T* x = a.in<T>(0) + plane * in_plane_;
      T* y = a.out<T>(0) + plane * out_plane_;
      ForPlaces([&](int64_t oh, int64_t ow) {
        double sum = 0;
        ForTaps(oh, ow, [&](int64_t at) { sum += static_cast<double>(x[at]); });
        *y++ = static_cast<T>(sum / Elements(count_padding_, oh, ow));
      });
    });
  }

 private:
  bool count_padding_;
};

template <typename T>
class AvgPoolGradKernel : public PoolKernel {
 public:
  explicit AvgPoolGradKernel(const NodeSpec& node)
      : PoolKernel(OutShape(node, 0), InShape(node, 0), node.attributes),
        count_padding_(node.attributes.Int("count_padding") != 0) {}
  void Run(const Arguments& a) override {
    ForPlanes([&](int64_t plane) {
      const T* dy = a.in<T>(0) + plane * out_plane_;
      T* dx = a.out<T>(0) + plane * in_plane_;
      std::fill_n(dx, in_plane_, T(0));
      ForPlaces([&](int64_t oh, int64_t ow) {
        const T part = *dy++ / static_cast<T>(Elements(count_padding_, oh, ow));
        ForTaps(oh, ow, [&](int64_t at) { dx[at] += part; });
      });
    });
  }

 private:
  bool count_padding_;
};

// What adaptive pooling and its gradient share: the windows follow from the two shapes.
class AdaptiveKernel : public ReferencePrimitive {
 protected:
  AdaptiveKernel(const Shape& in, const Shape& out)
      : planes_(in.Product(0, 2)),
        in_h_(in.dim(2)),
        in_w_(in.dim(3)),
        out_h_(out.dim(2)),
        out_w_(out.dim(3)),
        in_plane_(in_h_ * in_w_),
        out_plane_(out_h_ * out_w_) {}

  template <typename Body>
  void ForPlanes(const Body& body) const {
    ParallelFor(planes_, in_plane_ + out_plane_, body);
  }

  // Calls body(rows, columns) for each output place.
  template <typename Body>
  void ForWindows(const Body& body) const {
    for (int64_t oh = 0; oh < out_h_; ++oh) {
      for (int64_t ow = 0; ow < out_w_; ++ow)
        body(AdaptivePlaces(oh, in_h_, out_h_), AdaptivePlaces(ow, in_w_, out_w_));
    }
  }

  static double Elements(const Range& rows, const Range& columns) {
    return static_cast<double>((rows.end - rows.begin) * (columns.end - columns.begin));
  }

  int64_t planes_, in_h_, in_w_, out_h_, out_w_, in_plane_, out_plane_;
};

template <typename T>
class AdaptiveAvgPoolKernel : public AdaptiveKernel {
 public:
  explicit AdaptiveAvgPoolKernel(const NodeSpec& node)
      : AdaptiveKernel(InShape(node, 0), OutShape(node, 0)) {}
  void Run(const Arguments& a) override {
    ForPlanes([&](int64_t plane) {
      const T* x = a.in<T>(0) + plane * in_plane_;
      T* y = a.out<T>(0) + plane * out_plane_;
      ForWindows([&](const Range& rows, const Range& columns) {
        double sum = 0;
        for (int64_t i = rows.begin; i < rows.end; ++i) {
          for (int64_t j = columns.begin; j < columns.end; ++j)
            sum += static_cast<double>(x[i * in_w_ + j]);
        }
        *y++ = static_cast<T>(sum / Elements(rows, columns));
      });
    });
  }
};

template <typename T>
class AdaptiveAvgPoolGradKernel : public AdaptiveKernel {
 public:
  explicit AdaptiveAvgPoolGradKernel(const NodeSpec& node)
      : AdaptiveKernel(OutShape(node, 0), InShape(node, 0)) {}
  void Run(const Arguments& a) override {
    ForPlanes([&](int64_t plane) {
      const T* dy = a.in<T>(0) + plane * out_plane_;
      T* dx = a.out<T>(0) + plane * in_plane_;
      std::fill_n(dx, in_plane_, T(0));
      ForWindows([&](const Range& rows, const Range& columns) {
        const T part = *dy++ / static_cast<T>(Elements(rows, columns));
        for (int64_t i = rows.begin; i < rows.end; ++i) {
          for (int64_t j = columns.begin; j < columns.end; ++j) dx[i * in_w_ + j] += part;
        }
      });
    });
  }
};

// Where the largest of a window of rows of `width` is; the first of equals, or the first NaN.
template <typename T>
int64_t LargestIn(const T* x, int64_t width, const Range& rows, const Range& columns) {
  int64_t best = rows.begin * width + columns.begin;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    for (int64_t j = columns.begin; j < columns.end; ++j) {
      if (IsLarger(x[i * width + j], x[best])) best = i * width + j;
    }
  }
  return best;
}

template <typename T>
class AdaptiveMaxPoolKernel : public AdaptiveKernel {
 public:
  explicit AdaptiveMaxPoolKernel(const NodeSpec& node)
      : AdaptiveKernel(InShape(node, 0), OutShape(node, 0)) {}
  void Run(const Arguments& a) override {
    ForPlanes([&](int64_t plane) {
      const T* x = a.in<T>(0) + plane * in_plane_;
      T* y = a.out<T>(0) + plane * out_plane_;
      ForWindows([&](const Range& rows, const Range& columns) {
        *y++ = x[LargestIn(x, in_w_, rows, columns)];
      });
    });
  }
};

template <typename T>
class AdaptiveMaxPoolGradKernel : public AdaptiveKernel {
 public:
  explicit AdaptiveMaxPoolGradKernel(const NodeSpec& node)
      : AdaptiveKernel(InShape(node, 0), InShape(node, 1)) {}
  void Run(const Arguments& a) override {
    ForPlanes([&](int64_t plane) {
      const T *x = a.in<T>(0) + plane * in_plane_, *dy = a.in<T>(1) + plane * out_plane_;
      T* dx = a.out<T>(0) + plane * in_plane_;
      std::fill_n(dx, in_plane_, T(0));
      ForWindows([&](const Range& rows, const Range& columns) {
        dx[LargestIn(x, in_w_, rows, columns)] += *dy++;
      });
    });
  }
};

}  // namespace

std::unique_ptr<Primitive> AdaptiveAvgPool2d(const NodeSpec& node) {
  return MakeReal<AdaptiveAvgPoolKernel>(node);
}
std::unique_ptr<Primitive> AdaptiveAvgPool2dGrad(const NodeSpec& node) {
  return MakeReal<AdaptiveAvgPoolGradKernel>(node);
}
std::unique_ptr<Primitive> AdaptiveMaxPool2d(const NodeSpec& node) {
  return MakeReal<AdaptiveMaxPoolKernel>(node);
}
std::unique_ptr<Primitive> AdaptiveMaxPool2dGrad(const NodeSpec& node) {
  return MakeReal<AdaptiveMaxPoolGradKernel>(node);
}
std::unique_ptr<Primitive> MaxPool2d(const NodeSpec& node) {
  return MakeReal<MaxPoolKernel>(node);
}
std::unique_ptr<Primitive> MaxPool2dGrad(const NodeSpec& node) {
  return MakeReal<MaxPoolGradKernel>(node);
}
std::unique_ptr<Primitive> MaxPool2dTaps(const NodeSpec& node) {
  return MakeReal<MaxPoolTapsKernel>(node);
}
std::unique_ptr<Primitive> MaxPool2dTapsGrad(const NodeSpec& node) {
  return MakeReal<MaxPoolTapsGradKernel>(node);
}
std::unique_ptr<Primitive> AvgPool2d(const NodeSpec& node) {
  return MakeReal<AvgPoolKernel>(node);
}
std::unique_ptr<Primitive> AvgPool2dGrad(const NodeSpec& node) {
  return MakeReal<AvgPoolGradKernel>(node);
}

}  // namespace ringmaster::kernels::reference
