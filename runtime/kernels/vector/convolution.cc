// Convolutions as matrix products: the windows of an image become the columns of a matrix
// (Chellapilla, Puri, Simard: "High performance convolutional neural networks for document
// processing", 2006), one image and some rows of the result at a time, so that the matrix stays in
// the cache. For small images of few channels, which oneDNN's blocked layouts pad and reorder, and
// for whatever the library itself would make a product of.
#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "runtime/kernels/vector/convolution_matrix.h"
#include "runtime/kernels/vector/direct_convolution.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/in_rows.h"
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

// Kernels that work through images one by one, some rows of the result at a time, each with a
// matrix and a product.
class ByRows : public VectorPrimitive {
 public:
  size_t scratch_bytes() const override {
    return static_cast<size_t>(device::ThreadCount()) * floats() * sizeof(float);
  }

 protected:
  explicit ByRows(const ConvolutionMatrix& e) : e_(e), rows_(e.RowsAtOnce()) {}

  // Of so many columns of the matrix.
  virtual Product ProductOf(int64_t columns) const = 0;

  int64_t parts() const { return PartsOf(e_.h.out, rows_); }
  Range RowsOf(int64_t part) const {
    return {part * rows_, std::min((part + 1) * rows_, e_.h.out)};
  }
  int64_t columns() const { return rows_ * e_.w.out; }

  // For each thread: the matrix, what the kernel has beside it, and the product's own.
  size_t matrix_floats() const { return static_cast<size_t>(e_.window * columns()); }
  virtual size_t own_floats() const { return 0; }
  size_t floats() const {
    return matrix_floats() + own_floats() + ProductOf(columns()).scratch_bytes() / sizeof(float);
  }

  // A lone image's product has the threads to itself.
  static void Multiply(const Product& product, bool alone, const float* x, const float* w, float* y,
                       float* scratch) {
    alone ? product.Run(x, w, nullptr, y, scratch) : product.RunAlone(x, w, nullptr, y, scratch);
  }

  const ConvolutionMatrix e_;
  const int64_t rows_;
};

// (x, weight, bias or nothing) -> y, or its positive part: for each image weight [O, window] times
// the matrix.
class Conv2dKernel : public ByRows {
 public:
  Conv2dKernel(const ConvolutionMatrix& e, bool has_bias, bool relu)
      : ByRows(e), has_bias_(has_bias), relu_(relu) {}

  void Run(const Arguments& a) override {
    const int64_t pieces = e_.images() * parts();
    ForParts(pieces, e_.window * columns(), floats(), static_cast<float*>(a.scratch),
             [&](int64_t i, float* scratch) {
               const int64_t image = i / parts(), group = image % e_.groups;
               const Range rows = RowsOf(i % parts());
               float* const y = a.out<float>(0) + image * e_.result;
               float* const result = parts() == 1 ? y : scratch + matrix_floats();
               const Product product = ProductOf(rows.size() * e_.w.out);
               e_.Gather(a.in<float>(0) + image * e_.image, rows, scratch);
               Multiply(product, pieces == 1, a.in<float>(1) + group * e_.weights(), scratch,
                        result, scratch + matrix_floats() + own_floats());
               Finish(result, product.n,
                      has_bias_ ? a.in<float>(2) + group * e_.out_channels : nullptr,
                      y + rows.begin * e_.w.out);
             });
  }

 private:
  Product ProductOf(int64_t columns) const override {
    return {
        .m = e_.out_channels, .k = e_.window, .n = columns, .a = {e_.window, 1}, .b = {columns, 1}};
  }

  // What comes out of the product where that is not its place.
  size_t own_floats() const override {
    return parts() == 1 ? 0 : static_cast<size_t>(e_.out_channels * columns());
  }

  // What comes out of the product, a row for each channel, to its place.
  void Finish(const float* result, int64_t columns, const float* bias, float* y) const {
    for (int64_t o = 0; o < e_.out_channels; ++o, result += columns, y += e_.places) {
      if (bias != nullptr) {
        const float offset = bias[o];
        for (int64_t i = 0; i < columns; ++i) y[i] = result[i] + offset;
      } else if (result != y) {
        std::copy_n(result, columns, y);
      }
      // What is no number stays, as in the op of its own.
      for (int64_t i = 0; relu_ && i < columns; ++i) y[i] = y[i] <= 0.0F ? 0.0F : y[i];
    }
  }

  const bool has_bias_;
  const bool relu_;
};

// (dy, weight) -> dx: for each image weight transposed times dy is the gradient of the matrix.
class Conv2dGradInputKernel : public ByRows {
 public:
  explicit Conv2dGradInputKernel(const ConvolutionMatrix& e) : ByRows(e) {}

  void Run(const Arguments& a) override {
    const int64_t images = e_.images();
    ForParts(images, e_.window * e_.places, floats(), static_cast<float*>(a.scratch),
             [&](int64_t image, float* scratch) {
               const float* const dy = a.in<float>(0) + image * e_.result;
               const float* const weight = a.in<float>(1) + image % e_.groups * e_.weights();
               float* const dx = a.out<float>(0) + image * e_.image;
               std::fill_n(dx, e_.image, 0.0F);
               for (int64_t part = 0; part < parts(); ++part) {
                 const Range rows = RowsOf(part);
                 Multiply(ProductOf(rows.size() * e_.w.out), images == 1, weight,
                          dy + rows.begin * e_.w.out, scratch, scratch + matrix_floats());
                 e_.Scatter(scratch, rows, dx);
               }
             });
  }

 private:
  Product ProductOf(int64_t columns) const override {
    return {.m = e_.window,
            .k = e_.out_channels,
            .n = columns,
            .a = {1, e_.window},
            .b = {e_.places, 1}};
  }
};

// (x, dy) -> dweight: the sum over samples of dy [O, places] times the matrix transposed. A task
// has a tile's columns of the weight, so that each of its elements is summed by one thread. What a
// place sees of one row of a window lies side by side in the image, so the transposed matrix is
// made at once, by rows.
class Conv2dGradWeightKernel : public VectorPrimitive {
 public:
  explicit Conv2dGradWeightKernel(const ConvolutionMatrix& e)
      : e_(e),
        panels_(PartsOf(e.window, kTileColumns)),
        width_(e.w.in + 2 * e.w.padding),
        plane_((e.h.in + 2 * e.h.padding) * width_) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(device::ThreadCount() * floats()) * sizeof(float);
  }

  void Run(const Arguments& a) override {
    ForParts(e_.groups * panels_, e_.batch * e_.places * e_.out_channels,
             static_cast<size_t>(floats()), static_cast<float*>(a.scratch),
             [&](int64_t i, float* scratch) {
               RunPanel(i % panels_, i / panels_, a.in<float>(0), a.in<float>(1), scratch,
                        a.out<float>(0) + i / panels_ * e_.weights());
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

  // So many columns of a group's weights.
  void RunPanel(int64_t panel, int64_t group, const float* x, const float* dy, float* scratch,
                float* dweight) const {
    float* const sums = scratch;
    float* const packed = sums + kTileColumns * e_.out_channels;
    float* const padded = packed + kTileColumns * (e_.places + 1);
    const Pieces pieces = PiecesOf(panel);
    std::fill_n(padded, pieces.channels * plane_, 0.0F);
    for (int64_t n = 0; n < e_.batch; ++n) {
      const int64_t image = n * e_.groups + group;
      Pad(pieces, x + image * e_.image, padded);
      Gather(pieces, padded, packed);
      Multiply(dy + image * e_.result, packed, sums, n > 0);
    }
    const int64_t first = panel * kTileColumns, columns = std::min(kTileColumns, e_.window - first);
    for (int64_t o = 0; o < e_.out_channels; ++o)
      std::copy_n(sums + o * kTileColumns, columns, dweight + o * e_.window + first);
  }

  // A sum over many places loses less in parts.
  void Multiply(const float* dy, const float* packed, float* sums, bool accumulate) const {
    constexpr int64_t kMostPlaces = 1024;
    const int64_t parts = PartsOf(e_.places, kMostPlaces);
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t first = e_.places * part / parts, end = e_.places * (part + 1) / parts;
      const Product product{.m = e_.out_channels, .k = end - first, .a = {e_.places, 1}};
      product.RunPacked(dy + first, packed + first * kTileColumns, sums, kTileColumns,
                        accumulate || part > 0);
    }
  }

  Pieces PiecesOf(int64_t panel) const {
    const int64_t taps = e_.h.window * e_.w.window, first = panel * kTileColumns;
    const int64_t end = std::min(first + kTileColumns, e_.window);
    Pieces pieces{.first_channel = first / taps, .channels = (end - 1) / taps - first / taps + 1};
    for (int64_t tap = first; tap < end;) {
      const int64_t channel = tap / taps - pieces.first_channel, i = tap % taps / e_.w.window,
                    j = tap % e_.w.window;
      pieces.each[pieces.count++] = {
          channel * plane_ + i * e_.h.dilation * width_ + j * e_.w.dilation, tap - first};
      tap += e_.w.dilation == 1 ? std::min({e_.w.window - j, end - tap, kLane}) : 1;
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

  const ConvolutionMatrix e_;
  const int64_t panels_;
  const int64_t width_, plane_;  // of a padded channel: of a row, and of all
};

bool IsPlain(const Attributes& attributes) {
  const std::vector<int64_t> dilation = attributes.Ints("dilation");
  return attributes.Int("groups") <= 1 &&
         (dilation.empty() || (dilation[0] == 1 && dilation[1] == 1));
}

// The extents, where the kernels are for them.
bool Takes(const NodeSpec& node, const ConvolutionMatrix& e) {
  return Fits(node) && IsPlain(node.attributes) && e.Small();
}

// Whether the library has no kernel for the node but its product of matrices, which takes what it
// packs into from the heap in each call: for groups, dilation, wide windows, and images of few
// pixels, which of them on which processor it knows itself.
bool IsLibrarysProduct(const NodeSpec& node) {
  if (!FitsInAnyLayout(node)) return false;
  const auto primitive = Prepare(node, Selection::kOneDnn);
  return primitive != nullptr && primitive->name().find("gemm:jit") != std::string::npos;
}

}  // namespace

std::unique_ptr<Primitive> Conv2d(const NodeSpec& node) {
  if (auto winograd = WinogradConv2dOfBlocks(node)) return winograd;
  if (auto split = SplitConv2d(node)) return split;
  const ConvolutionMatrix e(node.inputs[0].shape, node.inputs[1].shape, node.outputs[0].shape,
                            node.attributes);
  if (Takes(node, e)) {
    if (auto winograd = WinogradConv2d(node)) return winograd;
    if (auto direct = DirectConv2d(node)) return direct;
  } else if (!IsLibrarysProduct(node)) {
    return nullptr;
  }
  return InRows(node, std::make_unique<Conv2dKernel>(e, node.inputs.size() == 3,
                                                     node.attributes.Int("relu") != 0));
}

std::unique_ptr<Primitive> Conv2dBatchNorm(const NodeSpec& node) {
  if (auto winograd = WinogradConv2dBatchNormOfBlocks(node)) return winograd;
  return SplitConv2dBatchNorm(node);
}

std::unique_ptr<Primitive> Conv2dGradInput(const NodeSpec& node) {
  if (auto winograd = WinogradConv2dGradInputOfBlocks(node)) return winograd;
  if (auto split = SplitConv2dGradInput(node)) return split;
  if (node.inputs.size() != 2) return nullptr;
  const ConvolutionMatrix e(node.outputs[0].shape, node.inputs[1].shape, node.inputs[0].shape,
                            node.attributes);
  if (Takes(node, e)) {
    if (auto winograd = WinogradConv2dGradInput(node)) return winograd;
  } else if (!IsLibrarysProduct(node)) {
    return nullptr;
  }
  return InRows(node, std::make_unique<Conv2dGradInputKernel>(e));
}

std::unique_ptr<Primitive> Conv2dGradWeight(const NodeSpec& node) {
  if (auto winograd = WinogradConv2dGradWeightOfBlocks(node)) return winograd;
  if (auto split = SplitConv2dGradWeight(node)) return split;
  const ConvolutionMatrix e(node.inputs[0].shape, node.outputs[0].shape, node.inputs[1].shape,
                            node.attributes);
  if (Takes(node, e)) {
    if (auto winograd = WinogradConv2dGradWeight(node)) return winograd;
    if (auto direct = DirectConv2dGradWeight(node)) return direct;
  } else if (!IsLibrarysProduct(node)) {
    return nullptr;
  }
  return InRows(node, std::make_unique<Conv2dGradWeightKernel>(e));
}

}  // namespace ringmaster::kernels::vector
