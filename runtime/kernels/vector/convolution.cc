// Convolution of small images as matrix products: the windows of an image become the columns of a
// matrix (Chellapilla, Puri, Simard: "High performance convolutional neural networks for document
// processing", 2006), one image at a time, so that the matrix stays in the cache. For few channels,
// which oneDNN's blocked layouts pad and reorder.
#include <algorithm>
#include <array>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/direct_convolution.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/vector/rows.h"
#include "runtime/kernels/vector/split_convolution.h"
#include "runtime/kernels/vector/vector.h"
#include "runtime/kernels/vector/winograd.h"
#include "runtime/kernels/vector/winograd_blocks.h"
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

  // The image's matrix: each row is what one tap of one channel sees at every place.
  void Gather(const float* x, float* to) const {
    ForTaps([&](const Tap& tap, int64_t row) {
      float* const all = to + row * places;
      if (h.padding != 0 || w.padding != 0) std::fill_n(all, places, 0.0F);
      const Runs runs = RunsOf(tap);
      if (w.stride != 1) {
        ForRuns(runs, x, all, [&](const float* from, float* run) {
          for (int64_t i = 0; i < runs.count; ++i) run[i] = from[i * w.stride];
        });
      } else if (runs.count == kLane) {
        ForRuns(runs, x, all, CopyLane);
      } else if (runs.count > kLane) {
        // The last vector overlaps the one before.
        ForRuns(runs, x, all, [last = runs.count - kLane](const float* from, float* run) {
          for (int64_t i = 0; i < last; i += kLane) CopyLane(from + i, run + i);
          CopyLane(from + last, run + last);
        });
      } else {
        ForRuns(runs, x, all, [&](const float* from, float* run) {
          for (int64_t i = 0; i < runs.count; ++i) run[i] = from[i];
        });
      }
    });
  }

  // The adjoint: adds all rows to the image.
  void Scatter(const float* from, float* dx) const {
    ForTaps([&](const Tap& tap, int64_t row) {
      const float* const all = from + row * places;
      const Runs runs = RunsOf(tap);
      if (w.stride != 1) {
        ForRuns(runs, dx, all, [&](float* to, const float* run) {
          for (int64_t i = 0; i < runs.count; ++i) to[i * w.stride] += run[i];
        });
      } else {
        ForRuns(runs, dx, all, [&](float* to, const float* run) {
          int64_t i = 0;
          for (; i + kLane <= runs.count; i += kLane) AddLane(run + i, to + i);
          for (; i < runs.count; ++i) to[i] += run[i];
        });
      }
    });
  }

 private:
  // What a row of the matrix stands for: a channel, and a place in the window.
  struct Tap {
    int64_t channel, i, j;
  };

  // Calls body(tap, its number) for all rows of the matrix.
  template <typename Body>
  void ForTaps(const Body& body) const {
    Tap tap{};
    for (int64_t row = 0; row < window; ++row) {
      body(tap, row);
      if (++tap.j < w.window) continue;
      tap.j = 0;
      if (++tap.i < h.window) continue;
      tap.i = 0;
      ++tap.channel;
    }
  }

  // The places of one tap that lie inside the image: in each of `rows` rows of the result `count`
  // that are side by side, and in the image w.stride apart.
  struct Runs {
    int64_t rows, count;
    int64_t place, at;  // of the first, in the result and in the image
  };

  Runs RunsOf(const Tap& tap) const {
    const Range down = Inside(h, tap.i), across = Inside(w, tap.j);
    return {down.end - down.begin, across.end - across.begin, down.begin * w.out + across.begin,
            (tap.channel * h.in + h.InputAt(down.begin, tap.i)) * w.in +
                w.InputAt(across.begin, tap.j)};
  }

  // Places whose tap falls inside: 0 <= place * stride - padding + tap < in.
  static Range Inside(const Axis& axis, int64_t tap) {
    const auto places_before = [&](int64_t pixels) {
      if (pixels <= 0) return int64_t{0};
      return axis.stride == 1 ? pixels : (pixels + axis.stride - 1) / axis.stride;
    };
    const int64_t lack = axis.padding - tap;
    const int64_t end = std::min(axis.out, places_before(axis.in + lack));
    return {std::min(places_before(lack), end), end};
  }

  // Calls body(where a run begins in the image, where in the row of the matrix).
  template <typename Image, typename Row, typename Body>
  void ForRuns(const Runs& runs, Image* image, Row* row, const Body& body) const {
    if (runs.rows == 0 || runs.count == 0) return;
    image += runs.at;
    row += runs.place;
    for (int64_t i = 0; i < runs.rows; ++i) {
      body(image, row);
      image += h.stride * w.in;
      row += w.out;
    }
  }

  static void CopyLane(const float* from, float* to) {
    _mm256_storeu_ps(to, _mm256_loadu_ps(from));
  }
  static void AddLane(const float* from, float* to) {
    _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), _mm256_loadu_ps(from)));
  }
};

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

  // Calls body(sample, scratch) for all samples.
  template <typename Body>
  void ForSamples(float* scratch, const Body& body) const {
    ForParts(e_.batch, e_.window * e_.places, floats(), scratch, body);
  }

  // A single sample's product has the threads to itself.
  void Multiply(const float* x, const float* w, float* y, float* scratch) const {
    e_.batch > 1 ? product_.RunAlone(x, w, nullptr, y, scratch)
                 : product_.Run(x, w, nullptr, y, scratch);
  }

  const Extents e_;
  const Product product_;
};

// (x, weight, bias or nothing) -> y, or its positive part: for each sample weight [O, window] times
// the matrix.
class Conv2dKernel : public BySample {
 public:
  Conv2dKernel(const Extents& e, bool has_bias, bool relu)
      : BySample(e, {.m = e.out_channels,
                     .k = e.window,
                     .n = e.places,
                     .a = {e.window, 1},
                     .b = {e.places, 1}}),
        has_bias_(has_bias),
        relu_(relu) {}

  void Run(const Arguments& a) override {
    ForSamples(static_cast<float*>(a.scratch), [&](int64_t n, float* scratch) {
      e_.Gather(a.in<float>(0) + n * e_.image, scratch);
      float* y = a.out<float>(0) + n * e_.result;
      Multiply(a.in<float>(1), scratch, y, scratch + matrix_floats());
      if (has_bias_) AddBias(a.in<float>(2), y);
      if (relu_) KeepPositive(y);
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

  // What is no number stays, as in the op of its own.
  void KeepPositive(float* y) const {
    for (int64_t i = 0; i < e_.result; ++i) y[i] = y[i] <= 0.0F ? 0.0F : y[i];
  }

  const bool has_bias_;
  const bool relu_;
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
    ForSamples(static_cast<float*>(a.scratch), [&](int64_t n, float* scratch) {
      Multiply(a.in<float>(1), a.in<float>(0) + n * e_.result, scratch, scratch + matrix_floats());
      float* dx = a.out<float>(0) + n * e_.image;
      std::fill_n(dx, e_.image, 0.0F);
      e_.Scatter(scratch, dx);
    });
  }
};

// (x, dy) -> dweight: the sum over samples of dy [O, places] times the matrix transposed. A task
// has a tile's columns of the weight, so that each of its elements is summed by one thread. What a
// place sees of one row of a window lies side by side in the image, so the transposed matrix is
// made at once, by rows.
class Conv2dGradWeightKernel : public VectorPrimitive {
 public:
  explicit Conv2dGradWeightKernel(const Extents& e)
      : e_(e),
        product_{.m = e.out_channels, .k = e.places, .a = {e.places, 1}},
        panels_((e.window + kTileColumns - 1) / kTileColumns),
        width_(e.w.in + 2 * e.w.padding),
        plane_((e.h.in + 2 * e.h.padding) * width_) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(panels_ * floats()) * sizeof(float);
  }

  void Run(const Arguments& a) override {
    device::ParallelFor(panels_, e_.batch * e_.places * e_.out_channels, [&](int64_t panel) {
      float* const sums = static_cast<float*>(a.scratch) + panel * floats();
      float* const packed = sums + kTileColumns * e_.out_channels;
      float* const padded = packed + kTileColumns * (e_.places + 1);
      const Pieces pieces = PiecesOf(panel);
      std::fill_n(padded, pieces.channels * plane_, 0.0F);
      for (int64_t n = 0; n < e_.batch; ++n) {
        Pad(pieces, a.in<float>(0) + n * e_.image, padded);
        Gather(pieces, padded, packed);
        product_.RunPacked(a.in<float>(1) + n * e_.result, packed, sums, kTileColumns, n > 0);
      }
      const int64_t first = panel * kTileColumns,
                    columns = std::min(kTileColumns, e_.window - first);
      for (int64_t o = 0; o < e_.out_channels; ++o) {
        std::copy_n(sums + o * kTileColumns, columns, a.out<float>(0) + o * e_.window + first);
      }
    });
  }

 private:
  // At most a vector of neighbouring taps: where a window of the padded image has the first, and
  // which column that is.
  struct Piece {
    int64_t at, column;
  };
  // Those of a panel, and the channels that they are of.
  struct Pieces {
    int64_t first_channel, channels;
    size_t count = 0;
    std::array<Piece, kTileColumns> each;
  };

  Pieces PiecesOf(int64_t panel) const {
    const int64_t taps = e_.h.window * e_.w.window, first = panel * kTileColumns;
    const int64_t end = std::min(first + kTileColumns, e_.window);
    Pieces pieces{.first_channel = first / taps, .channels = (end - 1) / taps - first / taps + 1};
    for (int64_t tap = first; tap < end;) {
      const int64_t channel = tap / taps - pieces.first_channel, i = tap % taps / e_.w.window,
                    j = tap % e_.w.window;
      pieces.each[pieces.count++] = {channel * plane_ + i * width_ + j, tap - first};
      tap += std::min({e_.w.window - j, end - tap, kLane});
    }
    return pieces;
  }

  // The channels of an image amid the zeros of `padded`.
  void Pad(const Pieces& pieces, const float* x, float* padded) const {
    x += pieces.first_channel * e_.h.in * e_.w.in;
    padded += e_.h.padding * width_ + e_.w.padding;
    for (int64_t c = 0; c < pieces.channels; ++c, x += e_.h.in * e_.w.in, padded += plane_)
      CopyRows(e_.h.in, e_.w.in, x, e_.w.in, padded, width_);
  }

  // A row for each place. What a vector has behind its piece is written over by what comes next, or
  // is in columns that nobody reads.
  void Gather(const Pieces& pieces, const float* padded, float* packed) const {
    const int64_t out = e_.w.out, rows = e_.h.out, down = e_.h.stride * width_,
                  across = e_.w.stride;
    for (int64_t row = 0; row < rows; ++row, padded += down) {
      for (int64_t i = 0; i < out; ++i, packed += kTileColumns) {
        const float* window = padded + i * across;
        for (size_t piece = 0; piece < pieces.count; ++piece) {
          _mm256_storeu_ps(packed + pieces.each[piece].column,
                           _mm256_loadu_ps(window + pieces.each[piece].at));
        }
      }
    }
  }

  // That one panel sees.
  int64_t most_channels() const {
    const int64_t taps = e_.h.window * e_.w.window;
    return std::min(e_.in_channels, (kTileColumns + taps - 2) / taps + 1);
  }
  // Of one panel: the weight's columns, the matrix's rows, and its channels. A vector may begin at
  // the last of the latter two; whole rows keep the next panel's where vectors like to begin.
  int64_t floats() const {
    const int64_t channel_rows = (most_channels() * plane_ + kLane) / kTileColumns + 1;
    return kTileColumns * (e_.out_channels + e_.places + 1 + channel_rows);
  }

  const Extents e_;
  const Product product_;
  const int64_t panels_;
  const int64_t width_, plane_;  // of a padded channel: of a row, and of all
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
  if (auto winograd = WinogradConv2dOfBlocks(node)) return winograd;
  if (auto split = SplitConv2d(node)) return split;
  const Extents e(node.inputs[0].shape, node.inputs[1].shape, node.outputs[0].shape,
                  node.attributes);
  if (!Takes(node, e)) return nullptr;
  if (auto winograd = WinogradConv2d(node)) return winograd;
  if (auto direct = DirectConv2d(node)) return direct;
  return std::make_unique<Conv2dKernel>(e, node.inputs.size() == 3,
                                        node.attributes.Int("relu") != 0);
}

std::unique_ptr<Primitive> Conv2dGradInput(const NodeSpec& node) {
  if (auto winograd = WinogradConv2dGradInputOfBlocks(node)) return winograd;
  if (auto split = SplitConv2dGradInput(node)) return split;
  if (node.inputs.size() != 2) return nullptr;
  const Extents e(node.outputs[0].shape, node.inputs[1].shape, node.inputs[0].shape,
                  node.attributes);
  if (!Takes(node, e)) return nullptr;
  if (auto winograd = WinogradConv2dGradInput(node)) return winograd;
  return std::make_unique<Conv2dGradInputKernel>(e);
}

std::unique_ptr<Primitive> Conv2dGradWeight(const NodeSpec& node) {
  if (auto winograd = WinogradConv2dGradWeightOfBlocks(node)) return winograd;
  if (auto split = SplitConv2dGradWeight(node)) return split;
  const Extents e(node.inputs[0].shape, node.outputs[0].shape, node.inputs[1].shape,
                  node.attributes);
  if (!Takes(node, e)) return nullptr;
  if (auto winograd = WinogradConv2dGradWeight(node)) return winograd;
  if (auto direct = DirectConv2dGradWeight(node)) return direct;
  return std::make_unique<Conv2dGradWeightKernel>(e);
}

}  // namespace ringmaster::kernels::vector
