// Convolution of small images as matrix products: the windows of an image become the columns of a
// matrix (Chellapilla, Puri, Simard: "High performance convolutional neural networks for document
// processing", 2006), one image at a time, so that the matrix stays in the cache. For few channels,
// which oneDNN's blocked layouts pad and reorder.
#include <algorithm>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/vector/vector.h"
#include "runtime/kernels/window.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// Up to this many floats one image's matrix, its windows by its places, stays in the second cache.
constexpr int64_t kMostMatrix = 1 << 16;
constexpr int64_t kMostWindow = 512;
constexpr int64_t kMostChannels = 256;

// What all three kernels need, from the shapes of x, weight and y.
struct Extents {
  int64_t batch, in_channels, out_channels;
  int64_t image, result;   // elements of a sample of x and of y
  int64_t places, window;  // columns and rows of an image's matrix
  Axis h, w;

  Extents(const tensor::Shape& x, const tensor::Shape& weight, const tensor::Shape& y,
          const Attributes& attributes)
      : batch(x.dim(0)),
        in_channels(x.dim(1)),
        out_channels(y.dim(1)),
        image(x.Product(1, 4)),
        result(y.Product(1, 4)),
        places(y.Product(2, 4)),
        window(weight.Product(1, 4)) {
    const Window both = MakeWindow(x, y, weight.dim(2), weight.dim(3), attributes);
    h = both.h;
    w = both.w;
  }

  bool Small() const {
    return window * places <= kMostMatrix && window <= kMostWindow && out_channels <= kMostChannels;
  }
  size_t matrix_bytes() const { return static_cast<size_t>(window * places) * sizeof(float); }

  // Calls body(place of the first, place in the image, count) for the runs of places, of one row
  // of the matrix, that lie inside the image; in the image they are w.stride apart.
  template <typename Body>
  void ForRuns(int64_t row, const Body& body) const {
    const int64_t taps = h.window * w.window;
    const int64_t channel = row / taps, i = row % taps / w.window, j = row % w.window;
    // Places whose tap j falls inside: 0 <= place * stride - padding + j < in.
    const int64_t lack = w.padding - j;
    const int64_t begin = lack > 0 ? (lack + w.stride - 1) / w.stride : 0;
    const int64_t end =
        w.in + lack > 0 ? std::min(w.out, (w.in + lack + w.stride - 1) / w.stride) : 0;
    if (begin >= end) return;
    for (int64_t oh = 0; oh < h.out; ++oh) {
      const int64_t ih = h.InputAt(oh, i);
      if (ih < 0 || ih >= h.in) continue;
      body(oh * w.out + begin, (channel * h.in + ih) * w.in + w.InputAt(begin, j), end - begin);
    }
  }

  // A row of the image's matrix: what one tap of one channel sees at every place.
  void Gather(const float* x, int64_t row, float* to) const {
    std::fill_n(to, places, 0.0F);
    ForRuns(row, [&](int64_t place, int64_t at, int64_t count) {
      const float* __restrict from = x + at;
      float* __restrict run = to + place;
      if (w.stride == 1) {
        for (int64_t i = 0; i < count; ++i) run[i] = from[i];
      } else {
        for (int64_t i = 0; i < count; ++i) run[i] = from[i * w.stride];
      }
    });
  }

  // The adjoint: adds a row to the image.
  void Scatter(const float* from, int64_t row, float* dx) const {
    ForRuns(row, [&](int64_t place, int64_t at, int64_t count) {
      const float* __restrict run = from + place;
      float* __restrict to = dx + at;
      if (w.stride == 1) {
        for (int64_t i = 0; i < count; ++i) to[i] += run[i];
      } else {
        for (int64_t i = 0; i < count; ++i) to[i * w.stride] += run[i];
      }
    });
  }
};

// Calls body(sample, scratch) for all samples, in one contiguous part for each thread, which has
// `floats` floats of `scratch`.
template <typename Body>
void ForSamples(const Extents& e, size_t floats, float* scratch, const Body& body) {
  const int64_t parts = std::min<int64_t>(e.batch, device::ThreadCount());
  if (parts == 1) {  // no parallel region, so that the products inside may have theirs
    for (int64_t n = 0; n < e.batch; ++n) body(n, scratch);
    return;
  }
  device::ParallelFor(parts, e.batch * e.window * e.places / parts, [&](int64_t part) {
    for (int64_t n = e.batch * part / parts; n < e.batch * (part + 1) / parts; ++n)
      body(n, scratch + static_cast<size_t>(part) * floats);
  });
}

// Kernels that work through the samples one by one, each with a matrix and a product.
class BySample : public VectorPrimitive {
 protected:
  BySample(const Extents& e, const Product& product) : e_(e), product_(product) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(device::ThreadCount()) * floats() * sizeof(float);
  }
  // For each thread: the matrix, then the product's own.
  size_t floats() const { return matrix_floats() + product_.scratch_bytes() / sizeof(float); }
  size_t matrix_floats() const { return e_.matrix_bytes() / sizeof(float); }

  // A single sample's product has the threads to itself.
  void Multiply(const float* x, const float* w, float* y, float* scratch) const {
    e_.batch > 1 ? product_.RunAlone(x, w, nullptr, y, scratch)
                 : product_.Run(x, w, nullptr, y, scratch);
  }

  const Extents e_;
  const Product product_;
};

// (x, weight, bias or nothing) -> y: for each sample weight [O, window] times the matrix.
class Conv2dKernel : public BySample {
 public:
  Conv2dKernel(const Extents& e, bool has_bias)
      : BySample(e, {.m = e.out_channels,
                     .k = e.window,
                     .n = e.places,
                     .a = {e.window, 1},
                     .b = {e.places, 1}}),
        has_bias_(has_bias) {}

  void Run(const Arguments& a) override {
    ForSamples(e_, floats(), static_cast<float*>(a.scratch), [&](int64_t n, float* scratch) {
      for (int64_t row = 0; row < e_.window; ++row)
        e_.Gather(a.in<float>(0) + n * e_.image, row, scratch + row * e_.places);
      float* y = a.out<float>(0) + n * e_.result;
      Multiply(a.in<float>(1), scratch, y, scratch + matrix_floats());
      if (has_bias_) AddBias(a.in<float>(2), y);
    });
  }

 private:
  void AddBias(const float* bias, float* y) const {
    const int64_t places = e_.places;
    for (int64_t o = 0; o < e_.out_channels; ++o) {
      const float offset = bias[o];
      for (int64_t i = 0; i < places; ++i) y[o * places + i] += offset;
    }
  }

  const bool has_bias_;
};

// (dy, weight) -> dx: for each sample weight transposed times dy is the gradient of the matrix.
class Conv2dGradInputKernel : public BySample {
 public:
  explicit Conv2dGradInputKernel(const Extents& e)
      : BySample(e, {.m = e.window,
                     .k = e.out_channels,
                     .n = e.places,
                     .a = {1, e.window},
                     .b = {e.places, 1}}) {}

  void Run(const Arguments& a) override {
    ForSamples(e_, floats(), static_cast<float*>(a.scratch), [&](int64_t n, float* scratch) {
      Multiply(a.in<float>(1), a.in<float>(0) + n * e_.result, scratch, scratch + matrix_floats());
      float* dx = a.out<float>(0) + n * e_.image;
      std::fill_n(dx, e_.image, 0.0F);
      for (int64_t row = 0; row < e_.window; ++row) e_.Scatter(scratch + row * e_.places, row, dx);
    });
  }
};

// (x, dy) -> dweight: the sum over samples of dy [O, places] times the matrix transposed. A task
// has a tile's columns of the weight, so that each of its elements is summed by one thread.
class Conv2dGradWeightKernel : public VectorPrimitive {
 public:
  explicit Conv2dGradWeightKernel(const Extents& e)
      : e_(e),
        product_{.m = e.out_channels, .k = e.places, .a = {e.places, 1}},
        panels_((e.window + kTileColumns - 1) / kTileColumns) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(panels_ * floats()) * sizeof(float);
  }

  void Run(const Arguments& a) override {
    device::ParallelFor(panels_, e_.batch * e_.places * e_.out_channels, [&](int64_t panel) {
      float* rows = static_cast<float*>(a.scratch) + panel * floats();
      float* packed = rows + kTileColumns * e_.places;
      float* sums = packed + kTileColumns * e_.places;
      const int64_t first = panel * kTileColumns,
                    columns = std::min(kTileColumns, e_.window - first);
      for (int64_t n = 0; n < e_.batch; ++n) {
        for (int64_t i = 0; i < columns; ++i)
          e_.Gather(a.in<float>(0) + n * e_.image, first + i, rows + i * e_.places);
        Pack(e_.places, columns, {1, e_.places}, rows, packed);
        product_.RunPacked(a.in<float>(1) + n * e_.result, packed, sums, n > 0);
      }
      for (int64_t o = 0; o < e_.out_channels; ++o) {
        std::copy_n(sums + o * kTileColumns, columns, a.out<float>(0) + o * e_.window + first);
      }
    });
  }

 private:
  // Of one panel: rows of the matrix, the same packed, and the weight's columns.
  int64_t floats() const { return kTileColumns * (2 * e_.places + e_.out_channels); }

  const Extents e_;
  const Product product_;
  const int64_t panels_;
};

bool IsPlain(const Attributes& attributes) {
  const std::vector<int64_t> dilation = attributes.Ints("dilation");
  return attributes.Int("groups") <= 1 &&
         (dilation.empty() || (dilation[0] == 1 && dilation[1] == 1));
}

// The extents, where the kernels are for them.
bool Takes(const NodeSpec& node, const Extents& e) {
  return Fits(node) && IsPlain(node.attributes) && e.Small();
}

}  // namespace

std::unique_ptr<Primitive> Conv2d(const NodeSpec& node) {
  const Extents e(node.inputs[0].shape, node.inputs[1].shape, node.outputs[0].shape,
                  node.attributes);
  if (!Takes(node, e)) return nullptr;
  return std::make_unique<Conv2dKernel>(e, node.inputs.size() == 3);
}

std::unique_ptr<Primitive> Conv2dGradInput(const NodeSpec& node) {
  const Extents e(node.outputs[0].shape, node.inputs[1].shape, node.inputs[0].shape,
                  node.attributes);
  if (!Takes(node, e)) return nullptr;
  return std::make_unique<Conv2dGradInputKernel>(e);
}

std::unique_ptr<Primitive> Conv2dGradWeight(const NodeSpec& node) {
  const Extents e(node.inputs[0].shape, node.outputs[0].shape, node.inputs[1].shape,
                  node.attributes);
  if (!Takes(node, e)) return nullptr;
  return std::make_unique<Conv2dGradWeightKernel>(e);
}

}  // namespace ringmaster::kernels::vector
