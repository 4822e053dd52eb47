// Convolution of images of few channels whose result is max-pooled by 2 x 2 at once: eight places
// of two rows of the result are two registers, straight from the image, and become four pixels
// before they leave. The weights' gradient has one product for each of these, with the window of
// the pixel that was the largest, a quarter of what the image's gradient would take.
#include <algorithm>
#include <array>
#include <cstring>
#include <immintrin.h>
#include <utility>
#include <vector>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/pooling.h"
#include "runtime/kernels/vector/rows.h"
#include "runtime/kernels/vector/vector.h"
#include "runtime/kernels/window.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// Of more channels or larger windows, others are faster; a row of a window fits into a register.
constexpr int64_t kMostInputs = 4, kMostSide = 7;
constexpr int64_t kQuarter = kLane / 2;  // pixels that become of a register of two rows

// What both kernels need, from the shapes of x, weight and what is pooled.
struct PooledExtents {
  int64_t batch, in_channels, out_channels;
  int64_t window;               // taps of all channels
  int64_t height, width;        // of what is pooled
  Axis h, w;                    // of the convolution
  int64_t padded_width, plane;  // of a padded channel: of a row, and of all

  PooledExtents(const tensor::Shape& x, const tensor::Shape& weight, const tensor::Shape& pooled,
                const Attributes& attributes)
      : batch(x.dim(0)),
        in_channels(x.dim(1)),
        out_channels(weight.dim(0)),
        window(weight.Product(1, 4)),
        height(pooled.dim(2)),
        width(pooled.dim(3)) {
    const Window both = MakeWindow(x, ConvolvedShape(x, weight, attributes), weight.dim(2),
                                   weight.dim(3), attributes);
    h = both.h;
    w = both.w;
    padded_width = w.in + 2 * w.padding;
    plane = (h.in + 2 * h.padding) * padded_width;
  }

  // Beside what is asked of the convolution by itself.
  bool Fit(const Attributes& attributes) const {
    const auto is_plain = [](const Axis& axis) {
      return axis.stride == 1 && axis.dilation == 1 && axis.window <= kMostSide;
    };
    const Attributes pooling = PoolingOf(attributes);
    const std::vector<int64_t> two{2, 2}, none{0, 0};
    return is_plain(h) && is_plain(w) && in_channels <= kMostInputs && width >= kQuarter &&
           pooling.Ints("window") == two && pooling.Ints("stride") == two &&
           pooling.Ints("padding") == none;
  }

  int64_t image() const { return in_channels * h.in * w.in; }
  int64_t pixels() const { return height * width; }
  int64_t pooled() const { return out_channels * pixels(); }
  // A vector may begin at the last pixel. Whole vectors keep the next thread's where they like to
  // begin.
  int64_t padded_floats() const {
    return PartsOf(in_channels * plane + kLane, 2 * kLane) * 2 * kLane;
  }

  // An image amid zeros, which stay as they are from one image to the next.
  void Pad(const float* x, float* padded) const {
    padded += h.padding * padded_width + w.padding;
    for (int64_t c = 0; c < in_channels; ++c, x += h.in * w.in, padded += plane)
      CopyRows(h.in, w.in, x, w.in, padded, padded_width);
  }
};

// Of two rows of eight places each, the largest of each window and which one that was.
struct Pooled {
  __m128 largest;
  __m128i taps;  // 0 to 3, in integers of 32 bits
};

// Halves of two rows each, as whole rows.
inline __m256 InRows(__m256 v) {
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xD8));
}

inline Pooled PoolTwoRows(__m256 above, __m256 below) {
  // Of each half: two windows' left or right places above, and then those below.
  const __m256 left = _mm256_shuffle_ps(above, below, 0x88),
               right = _mm256_shuffle_ps(above, below, 0xDD);
  const __m256 is_right = SecondIsLarger(left, right);
  const __m256 larger = InRows(_mm256_blendv_ps(left, right, is_right));
  const __m256i tap = _mm256_add_epi32(_mm256_srli_epi32(_mm256_castps_si256(InRows(is_right)), 31),
                                       _mm256_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2));
  const __m128 upper = _mm256_castps256_ps128(larger), lower = _mm256_extractf128_ps(larger, 1);
  const __m128 is_lower = SecondIsLarger(upper, lower);
  return {_mm_blendv_ps(upper, lower, is_lower),
          _mm_blendv_epi8(_mm256_castsi256_si128(tap), _mm256_extracti128_si256(tap, 1),
                          _mm_castps_si128(is_lower))};
}

// Some channels of the result at eight places of two rows. Accumulators are named by constants
// alone, or the compiler would keep them in memory.
struct PooledTile {
  static constexpr size_t kMostChannels = 6;  // twelve accumulators beside what they are made of

  const PooledExtents& e;
  const std::vector<int64_t>& taps;  // where each lies in the image, seen from the first
  bool relu;

  struct Rows {
    __m256 above, below;
  };

  template <size_t... kChannel>
  void Run(std::index_sequence<kChannel...>, const float* image, const float* weight,
           const float* bias, float* y, uint8_t* places) const {
    Rows sums[] = {Zero<kChannel>()...};
    const int64_t next_row = e.padded_width, next_channel = e.window;
    for (const int64_t tap : taps) {
      const __m256 above = _mm256_loadu_ps(image + tap),
                   below = _mm256_loadu_ps(image + tap + next_row);
      const auto add = [&](Rows& sum, int64_t channel) {
        const __m256 value = _mm256_broadcast_ss(weight + channel * next_channel);
        sum.above = _mm256_fmadd_ps(value, above, sum.above);
        sum.below = _mm256_fmadd_ps(value, below, sum.below);
      };
      (add(sums[kChannel], kChannel), ...);
      ++weight;
    }
    (Finish(sums[kChannel], kChannel, bias, y, places), ...);
  }

 private:
  template <size_t>
  static Rows Zero() {
    return {_mm256_setzero_ps(), _mm256_setzero_ps()};
  }
  void Finish(Rows rows, int64_t channel, const float* bias, float* y, uint8_t* places) const {
    if (bias != nullptr) {
      const __m256 offset = _mm256_broadcast_ss(bias + channel);
      rows = {_mm256_add_ps(rows.above, offset), _mm256_add_ps(rows.below, offset)};
    }
    if (relu) rows = {PositivePart(rows.above), PositivePart(rows.below)};
    const Pooled pooled = PoolTwoRows(rows.above, rows.below);
    _mm_storeu_ps(y + channel * e.pixels(), pooled.largest);
    const __m128i bytes = _mm_shuffle_epi8(
        pooled.taps, _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
    const int32_t four = _mm_cvtsi128_si32(bytes);
    std::memcpy(places + channel * e.pixels(), &four, sizeof four);
  }
};

using PooledTileFunction = void (*)(const PooledTile& tile, const float* image, const float* weight,
                                    const float* bias, float* y, uint8_t* places);

template <size_t kChannels>
void RunPooledTile(const PooledTile& tile, const float* image, const float* weight,
                   const float* bias, float* y, uint8_t* places) {
  tile.Run(std::make_index_sequence<kChannels>(), image, weight, bias, y, places);
}

template <size_t... kLess>
constexpr std::array<PooledTileFunction, sizeof...(kLess)> PooledTiles(
    std::index_sequence<kLess...>) {
  return {RunPooledTile<kLess + 1>...};
}

// By their number of channels less one.
constexpr auto kPooledTiles = PooledTiles(std::make_index_sequence<PooledTile::kMostChannels>());

// (x, weight, bias or nothing) -> (y, taps). A sum goes over the taps in their order, as in the
// convolution by itself.
class Conv2dMaxPoolKernel : public VectorPrimitive {
 public:
  Conv2dMaxPoolKernel(const PooledExtents& e, bool has_bias, bool relu)
      : e_(e), has_bias_(has_bias), relu_(relu) {
    for (int64_t tap = 0; tap < e.window; ++tap) {
      const int64_t of_channel = tap % (e.h.window * e.w.window);
      taps_.push_back(tap / (e.h.window * e.w.window) * e.plane +
                      of_channel / e.w.window * e.padded_width + of_channel % e.w.window);
    }
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(device::ThreadCount()) * floats() * sizeof(float);
  }

  void Run(const Arguments& a) override {
    auto* const scratch = static_cast<float*>(a.scratch);
    if (has_padding()) std::fill_n(scratch, scratch_bytes() / sizeof(float), 0.0F);
    // A product does about as much as touching an eighth of an element.
    const int64_t work = e_.pooled() * e_.window / 2;
    ForParts(e_.batch, work, floats(), scratch, [&](int64_t n, float* padded) {
      const float* image = a.in<float>(0) + n * e_.image();
      if (has_padding()) e_.Pad(image, padded);
      RunSample(has_padding() ? padded : image, a.in<float>(1),
                has_bias_ ? a.in<float>(2) : nullptr, a.out<float>(0) + n * e_.pooled(),
                a.out<uint8_t>(1) + n * e_.pooled());
    });
  }

 private:
  bool has_padding() const { return e_.h.padding != 0 || e_.w.padding != 0; }
  // Of a thread.
  size_t floats() const { return has_padding() ? static_cast<size_t>(e_.padded_floats()) : 0; }

  void RunSample(const float* image, const float* weight, const float* bias, float* y,
                 uint8_t* places) const {
    const PooledTile tile{e_, taps_, relu_};
    const int64_t tiles = PartsOf(e_.out_channels, PooledTile::kMostChannels);
    for (int64_t i = 0; i < tiles; ++i) {  // all about as large
      const int64_t first = e_.out_channels * i / tiles,
                    count = e_.out_channels * (i + 1) / tiles - first;
      const PooledTileFunction run = kPooledTiles[static_cast<size_t>(count - 1)];
      ForFours([&](int64_t row, int64_t column) {
        const int64_t at = first * e_.pixels() + row * e_.width + column;
        run(tile, image + 2 * row * e_.padded_width + 2 * column, weight + first * e_.window,
            bias == nullptr ? nullptr : bias + first, y + at, places + at);
      });
    }
  }

  // The last four of a row may begin among those before.
  template <typename Body>
  void ForFours(const Body& body) const {
    for (int64_t row = 0; row < e_.height; ++row) {
      for (int64_t column = 0; column < e_.width; column += kQuarter)
        body(row, std::min(column, e_.width - kQuarter));
    }
  }

  const PooledExtents e_;
  const bool has_bias_, relu_;
  std::vector<int64_t> taps_;
};

// Adds dy times what each pixel's largest place sees of one channel of the image, as many rows of a
// vector each, to `sums`. Neighbouring pixels have accumulators of their own, so that none waits
// for the one before.
template <size_t... kRow>
void AddWindows(std::index_sequence<kRow...>, const PooledExtents& e, const float* channel,
                const float* dy, const uint8_t* taps, float* sums) {
  struct Rows {
    __m256 even, odd;
  };
  const auto zero = [](size_t) { return Rows{_mm256_setzero_ps(), _mm256_setzero_ps()}; };
  Rows rows[] = {zero(kRow)...};
  const int64_t next_row = e.padded_width;
  const std::array<int64_t, 4> where{0, 1, next_row, next_row + 1};  // of a window's places
  for (int64_t row = 0; row < e.height; ++row) {
    const float* windows = channel + 2 * row * next_row;
    int64_t column = 0;
    for (; column + 2 <= e.width; column += 2, windows += 4) {
      const float *left = windows + where[*taps++ % 4], *right = windows + 2 + where[*taps++ % 4];
      const __m256 of_left = _mm256_broadcast_ss(dy++), of_right = _mm256_broadcast_ss(dy++);
      const auto add = [&](Rows& to, int64_t at) {
        to.even = _mm256_fmadd_ps(of_left, _mm256_loadu_ps(left + at), to.even);
        to.odd = _mm256_fmadd_ps(of_right, _mm256_loadu_ps(right + at), to.odd);
      };
      (add(rows[kRow], static_cast<int64_t>(kRow) * next_row), ...);
    }
    if (column == e.width) continue;
    const float* last = windows + where[*taps++ % 4];
    const __m256 of_last = _mm256_broadcast_ss(dy++);
    const auto add = [&](Rows& to, int64_t at) {
      to.even = _mm256_fmadd_ps(of_last, _mm256_loadu_ps(last + at), to.even);
    };
    (add(rows[kRow], static_cast<int64_t>(kRow) * next_row), ...);
  }
  const auto finish = [&](const Rows& made, float* to) {
    _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), _mm256_add_ps(made.even, made.odd)));
  };
  (finish(rows[kRow], sums + kRow * kLane), ...);
}

using AddWindowsFunction = void (*)(const PooledExtents& e, const float* channel, const float* dy,
                                    const uint8_t* taps, float* sums);

template <size_t kRows>
void AddWindowsOf(const PooledExtents& e, const float* channel, const float* dy,
                  const uint8_t* taps, float* sums) {
  AddWindows(std::make_index_sequence<kRows>(), e, channel, dy, taps, sums);
}

// By their number of rows less one.
constexpr std::array<AddWindowsFunction, kMostSide> kAddWindows{
    AddWindowsOf<1>, AddWindowsOf<2>, AddWindowsOf<3>, AddWindowsOf<4>,
    AddWindowsOf<5>, AddWindowsOf<6>, AddWindowsOf<7>};

// (x, dy, taps) -> dweight: the sum over samples, each of whose sums is made first. One thread has
// a channel of the result, and goes over all samples.
class Conv2dMaxPoolGradWeightKernel : public VectorPrimitive {
 public:
  explicit Conv2dMaxPoolGradWeightKernel(const PooledExtents& e) : e_(e) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(e_.out_channels * sums_floats() +
                               device::ThreadCount() * e_.padded_floats()) *
           sizeof(float);
  }

  void Run(const Arguments& a) override {
    auto* const sums = static_cast<float*>(a.scratch);
    float* const images = sums + e_.out_channels * sums_floats();
    std::fill_n(sums, scratch_bytes() / sizeof(float), 0.0F);
    const int64_t parts = std::min<int64_t>(e_.out_channels, device::ThreadCount());
    const int64_t work = e_.batch * e_.pooled() * e_.in_channels * e_.h.window / parts;
    device::ParallelFor(parts, work, [&](int64_t part) {
      RunChannels(a, e_.out_channels * part / parts, e_.out_channels * (part + 1) / parts,
                  images + part * e_.padded_floats(), sums);
    });
  }

 private:
  // Of one channel of the result.
  int64_t sums_floats() const { return e_.in_channels * e_.h.window * kLane; }

  void RunChannels(const Arguments& a, int64_t begin, int64_t end, float* image,
                   float* sums) const {
    const AddWindowsFunction add = kAddWindows[static_cast<size_t>(e_.h.window - 1)];
    for (int64_t n = 0; n < e_.batch; ++n) {
      e_.Pad(a.in<float>(0) + n * e_.image(), image);
      for (int64_t o = begin; o < end; ++o) {
        const int64_t at = n * e_.pooled() + o * e_.pixels();
        for (int64_t c = 0; c < e_.in_channels; ++c) {
          add(e_, image + c * e_.plane, a.in<float>(1) + at, a.in<uint8_t>(2) + at,
              sums + o * sums_floats() + c * e_.h.window * kLane);
        }
      }
    }
    float* to = a.out<float>(0) + begin * e_.window;
    for (const float* from = sums + begin * sums_floats(); from < sums + end * sums_floats();
         from += kLane, to += e_.w.window)
      std::copy_n(from, e_.w.window, to);
  }

  const PooledExtents e_;
};

}  // namespace

// Only where the op by itself would be ours as well.
std::unique_ptr<Primitive> Conv2dMaxPool2d(const NodeSpec& node) {
  if (!FitsWithTaps(node)) return nullptr;
  const tensor::Shape &x = node.inputs[0].shape, &weight = node.inputs[1].shape;
  const PooledExtents e(x, weight, node.outputs[0].shape, node.attributes);
  const tensor::ValueSpec image{ConvolvedShape(x, weight, node.attributes), tensor::DType::kF32};
  if (!e.Fit(node.attributes) ||
      Conv2d({"conv2d", node.attributes, node.inputs, {&image, 1}}) == nullptr)
    return nullptr;
  return std::make_unique<Conv2dMaxPoolKernel>(e, node.inputs.size() == 3,
                                               node.attributes.Int("relu") != 0);
}

std::unique_ptr<Primitive> Conv2dMaxPool2dGradWeight(const NodeSpec& node) {
  if (!FitsWithTaps(node)) return nullptr;
  const tensor::Shape &x = node.inputs[0].shape, &weight = node.outputs[0].shape;
  const PooledExtents e(x, weight, node.inputs[1].shape, node.attributes);
  const tensor::ValueSpec image{ConvolvedShape(x, weight, node.attributes), tensor::DType::kF32};
  const tensor::ValueSpec convolved[] = {node.inputs[0], image};
  if (!e.Fit(node.attributes) ||
      Conv2dGradWeight({"conv2d_grad_weight", node.attributes, convolved, node.outputs}) == nullptr)
    return nullptr;
  return std::make_unique<Conv2dMaxPoolGradWeightKernel>(e);
}

}  // namespace ringmaster::kernels::vector
