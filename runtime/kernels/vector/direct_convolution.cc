#include "runtime/kernels/vector/direct_convolution.h"

#include <algorithm>
#include <array>
#include <immintrin.h>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/vector/rows.h"
#include "runtime/kernels/window.h"

namespace ringmaster::kernels::vector {
namespace {

constexpr int64_t kLanes = 16;

// Sixteen neighbouring places of a channel's result: those of a row, and those of the row below
// that follow. Behind the result's last place there are none.
struct Places {
  int64_t at;  // where the first tap sees the first of them, in a padded channel
  uint16_t first_row, second_row;

  uint16_t all() const { return first_row | second_row; }
};

// A mask of the lanes [begin, end).
uint16_t Lanes(int64_t begin, int64_t end) {
  return static_cast<uint16_t>((1U << end) - (1U << begin));
}

// What both kernels need, from the shapes of x, weight and y.
struct DirectExtents {
  int64_t batch, in_channels, out_channels;
  int64_t places, window;  // of a channel's result, and taps of all channels
  Axis h, w;
  int64_t width, plane;           // of a padded channel: of a row, and of all
  std::vector<Places> registers;  // of a channel's result
  std::vector<int64_t> taps;      // where each begins in the padded image

  DirectExtents(const tensor::Shape& x, const tensor::Shape& weight, const tensor::Shape& y,
                const Attributes& attributes)
      : batch(x.dim(0)),
        in_channels(x.dim(1)),
        out_channels(y.dim(1)),
        places(y.Product(2, 4)),
        window(weight.Product(1, 4)) {
    const Window both = MakeWindow(x, y, weight.dim(2), weight.dim(3), attributes);
    h = both.h;
    w = both.w;
    width = w.in + 2 * w.padding;
    plane = (h.in + 2 * h.padding) * width;
    if (!Fit()) return;
    for (int64_t place = 0; place < places; place += kLanes) {
      const int64_t count = std::min(kLanes, places - place), column = place % w.out,
                    here = std::min(count, w.out - column);
      registers.push_back({place / w.out * width + column, Lanes(0, here), Lanes(here, count)});
    }
    for (int64_t tap = 0; tap < window; ++tap) {
      const int64_t of_channel = tap % (h.window * w.window);
      taps.push_back(tap / (h.window * w.window) * plane + of_channel / w.window * width +
                     of_channel % w.window);
    }
  }

  bool Fit() const { return batch > 1 && h.stride == 1 && w.stride == 1 && w.out >= kLanes - 1; }
  int64_t image() const { return in_channels * h.in * w.in; }
  int64_t result() const { return out_channels * places; }
  // How much further than its neighbour's the first place of a row sees.
  int64_t gap() const { return width - w.out; }
  bool has_padding() const { return h.padding != 0 || w.padding != 0; }
  int64_t padded_floats() const { return has_padding() ? in_channels * plane : 0; }

  // An image with its zeros, which is itself where it has none; `padded` has padded_floats().
  const float* Pad(const float* x, float* padded) const {
    if (!has_padding()) return x;
    std::fill_n(padded, in_channels * plane, 0.0F);
    for (int64_t c = 0; c < in_channels; ++c) {
      CopyRows(h.in, w.in, x + c * h.in * w.in, w.in,
               padded + c * plane + h.padding * width + w.padding, width);
    }
    return padded;
  }
};

class DirectPrimitive : public VectorPrimitive {
 public:
  std::string name() const override { return "vector/direct"; }

 protected:
  explicit DirectPrimitive(DirectExtents e) : e_(std::move(e)) {}

  const DirectExtents e_;
};

#pragma GCC push_options
#pragma GCC target("avx512f")

// What a tap sees of them, zeros in lanes that are none.
inline __m512 Load(const Places& places, const float* image, int64_t gap) {
  const float* from = image + places.at;
  return _mm512_mask_loadu_ps(_mm512_maskz_loadu_ps(places.first_row, from), places.second_row,
                              from + gap);
}

// Some channels of the result at the places of one register or two. Accumulators are named by
// constants alone, or the compiler would keep them in memory.
struct ForwardTile {
  const DirectExtents& e;
  bool relu;

  static constexpr size_t kMostChannels = 14;  // 28 accumulators beside what they are made of

  template <size_t... kChannel>
  void Run(std::index_sequence<kChannel...> channels, const float* image, const float* weight,
           const float* bias, const Places* places, float* y) const {
    __m512 sums[sizeof...(kChannel)] = {Zero<kChannel>()...};
    const int64_t gap = e.gap(), window = e.window;
    for (const int64_t tap : e.taps) {
      const __m512 seen = Load(*places, image + tap, gap);
      ((sums[kChannel] =
            _mm512_fmadd_ps(_mm512_set1_ps(weight[kChannel * window]), seen, sums[kChannel])),
       ...);
      ++weight;
    }
    Finish(channels, sums, bias, *places, y);
  }

  // A weight is loaded once for both.
  template <size_t... kChannel>
  void RunPair(std::index_sequence<kChannel...> channels, const float* image, const float* weight,
               const float* bias, const Places* places, float* y) const {
    __m512 sums[sizeof...(kChannel)] = {Zero<kChannel>()...},
           next_sums[sizeof...(kChannel)] = {Zero<kChannel>()...};
    const int64_t gap = e.gap(), window = e.window;
    for (const int64_t tap : e.taps) {
      const __m512 seen = Load(places[0], image + tap, gap),
                   next_seen = Load(places[1], image + tap, gap);
      const auto add = [&](__m512& sum, __m512& next_sum, int64_t channel) {
        const __m512 value = _mm512_set1_ps(weight[channel * window]);
        sum = _mm512_fmadd_ps(value, seen, sum);
        next_sum = _mm512_fmadd_ps(value, next_seen, next_sum);
      };
      (add(sums[kChannel], next_sums[kChannel], kChannel), ...);
      ++weight;
    }
    Finish(channels, sums, bias, places[0], y);
    Finish(channels, next_sums, bias, places[1], y + kLanes);
  }

 private:
  template <size_t>
  static __m512 Zero() {
    return _mm512_setzero_ps();
  }
  // What is no number stays; a maximum would keep the sign of -0.
  static __m512 PositivePart(__m512 v) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NLE_UQ), v);
  }

  template <size_t... kChannel>
  void Finish(std::index_sequence<kChannel...>, __m512 (&sums)[sizeof...(kChannel)],
              const float* bias, const Places& places, float* y) const {
    if (bias != nullptr)
      ((sums[kChannel] = _mm512_add_ps(sums[kChannel], _mm512_set1_ps(bias[kChannel]))), ...);
    if (relu) ((sums[kChannel] = PositivePart(sums[kChannel])), ...);
    const int64_t step = e.places;
    if (places.all() == Lanes(0, kLanes)) {
      (_mm512_storeu_ps(y + kChannel * step, sums[kChannel]), ...);
    } else {
      (_mm512_mask_storeu_ps(y + kChannel * step, places.all(), sums[kChannel]), ...);
    }
  }
};

using ForwardFunction = void (*)(const ForwardTile&, const float* image, const float* weight,
                                 const float* bias, const Places*, float* y);

template <size_t kChannels>
void RunForwardTile(const ForwardTile& tile, const float* image, const float* weight,
                    const float* bias, const Places* places, float* y) {
  tile.Run(std::make_index_sequence<kChannels>(), image, weight, bias, places, y);
}

template <size_t kChannels>
void RunForwardPair(const ForwardTile& tile, const float* image, const float* weight,
                    const float* bias, const Places* places, float* y) {
  tile.RunPair(std::make_index_sequence<kChannels>(), image, weight, bias, places, y);
}

// By their number of channels less one.
struct ForwardTiles {
  using ByChannels = std::array<ForwardFunction, ForwardTile::kMostChannels>;
  ByChannels single, pair;
};

template <size_t... kLess>
constexpr ForwardTiles MakeForwardTiles(std::index_sequence<kLess...>) {
  return {{RunForwardTile<kLess + 1>...}, {RunForwardPair<kLess + 1>...}};
}

constexpr ForwardTiles kForwardTiles =
    MakeForwardTiles(std::make_index_sequence<ForwardTile::kMostChannels>());

// (x, weight, bias or nothing) -> y, or its positive part. Each element is a sum over the taps in
// order, the bias added last.
class DirectConv2dKernel : public DirectPrimitive {
 public:
  DirectConv2dKernel(DirectExtents e, bool has_bias, bool relu)
      : DirectPrimitive(std::move(e)), has_bias_(has_bias), relu_(relu) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(device::ThreadCount() * e_.padded_floats()) * sizeof(float);
  }

  void Run(const Arguments& a) override {
    ForParts(e_.batch, e_.window * e_.places, static_cast<size_t>(e_.padded_floats()),
             static_cast<float*>(a.scratch), [&](int64_t n, float* padded) {
               RunSample(e_.Pad(a.in<float>(0) + n * e_.image(), padded), a.in<float>(1),
                         has_bias_ ? a.in<float>(2) : nullptr, a.out<float>(0) + n * e_.result());
             });
  }

 private:
  void RunSample(const float* image, const float* weight, const float* bias, float* y) const {
    constexpr auto kMost = static_cast<int64_t>(ForwardTile::kMostChannels);
    const ForwardTile tile{e_, relu_};
    const auto registers = static_cast<int64_t>(e_.registers.size());
    const int64_t tiles = PartsOf(e_.out_channels, kMost);
    for (int64_t r = 0; r < registers; r += 2) {
      const auto& functions = r + 1 < registers ? kForwardTiles.pair : kForwardTiles.single;
      for (int64_t i = 0; i < tiles; ++i) {  // all about as tall
        const int64_t first = e_.out_channels * i / tiles,
                      count = e_.out_channels * (i + 1) / tiles - first;
        functions[static_cast<size_t>(count - 1)](
            tile, image, weight + first * e_.window, bias == nullptr ? nullptr : bias + first,
            e_.registers.data() + r, y + first * e_.places + r * kLanes);
      }
    }
  }

  const bool has_bias_, relu_;
};

// Sums over the places of one sample, in lanes, of some channels of dy times what some taps see;
// they go on from where they are in memory.
struct WeightTile {
  const DirectExtents& e;

  static constexpr size_t kMost = 5;  // channels, and taps: 25 accumulators

  // Sums lie by channels, then by taps. As above they are named by constants.
  template <size_t... kTap, size_t... kSum>
  void Run(std::index_sequence<kTap...>, std::index_sequence<kSum...>, const float* image,
           const int64_t* taps, const float* dy, float* lanes) const {
    constexpr size_t kTaps = sizeof...(kTap);
    __m512 sums[] = {_mm512_loadu_ps(lanes + kSum * kLanes)...};
    const float* const from[] = {image + taps[kTap]...};
    const int64_t gap = e.gap(), step = e.places;
    for (const Places& places : e.registers) {
      const __m512 seen[] = {Load(places, from[kTap], gap)...};
      ((sums[kSum] = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(places.all(), dy + kSum / kTaps * step),
                                     seen[kSum % kTaps], sums[kSum])),
       ...);
      dy += kLanes;
    }
    (_mm512_storeu_ps(lanes + kSum * kLanes, sums[kSum]), ...);
  }
};

using WeightFunction = void (*)(const WeightTile&, const float* image, const int64_t* taps,
                                const float* dy, float* lanes);

template <size_t kTaps, size_t kChannels>
void RunWeightTile(const WeightTile& tile, const float* image, const int64_t* taps, const float* dy,
                   float* lanes) {
  tile.Run(std::make_index_sequence<kTaps>(), std::make_index_sequence<kTaps * kChannels>(), image,
           taps, dy, lanes);
}

// By their number of taps less one, and of channels less one.
using WeightRow = std::array<WeightFunction, WeightTile::kMost>;

template <size_t kTaps, size_t... kLess>
constexpr WeightRow WeightTilesOf(std::index_sequence<kLess...>) {
  return {RunWeightTile<kTaps, kLess + 1>...};
}

template <size_t... kLess>
constexpr std::array<WeightRow, WeightTile::kMost> WeightTiles(std::index_sequence<kLess...> less) {
  return {WeightTilesOf<kLess + 1>(less)...};
}

constexpr auto kWeightTiles = WeightTiles(std::make_index_sequence<WeightTile::kMost>());

// Of sixteen lanes, in halves.
inline float Total(__m512 lanes) {
  alignas(64) std::array<float, kLanes> each;
  _mm512_store_ps(each.data(), lanes);
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) each[i] += each[i + half];
  }
  return each[0];
}

// (x, dy) -> dweight: for each weight a sum over places and samples in sixteen lanes, which are
// added at the end. Samples are summed in a number of parts that depends on the batch alone.
class DirectConv2dGradWeightKernel : public DirectPrimitive {
 public:
  explicit DirectConv2dGradWeightKernel(DirectExtents e)
      : DirectPrimitive(std::move(e)), parts_(std::min(e_.batch, kMostParts)) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(parts_ * sum_floats() + device::ThreadCount() * e_.padded_floats()) *
           sizeof(float);
  }

  void Run(const Arguments& a) override {
    float* const sums = static_cast<float*>(a.scratch);
    ForParts(parts_, e_.batch * e_.places * e_.out_channels,
             static_cast<size_t>(e_.padded_floats()), sums + parts_ * sum_floats(),
             [&](int64_t part, float* padded) {
               float* const own = sums + part * sum_floats();
               std::fill_n(own, sum_floats(), 0.0F);
               for (int64_t n = e_.batch * part / parts_; n < e_.batch * (part + 1) / parts_; ++n) {
                 AddSample(e_.Pad(a.in<float>(0) + n * e_.image(), padded),
                           a.in<float>(1) + n * e_.result(), own);
               }
             });
    ForTiles([&](const Tile& tile) { Finish(tile, sums, a.out<float>(0)); });
  }

 private:
  static constexpr int64_t kMostParts = 8;

  // Some weights, and where their lanes lie among a part's: by channels, then by taps.
  struct Tile {
    int64_t first_channel, channels, first_tap, taps;
    int64_t lanes;
  };

  int64_t sum_floats() const { return e_.out_channels * e_.window * kLanes; }

  // Calls body(tile) for all weights, those of the same channels one after the other.
  template <typename Body>
  void ForTiles(const Body& body) const {
    constexpr auto kMost = static_cast<int64_t>(WeightTile::kMost);
    int64_t lanes = 0;
    for (int64_t channel = 0; channel < e_.out_channels; channel += kMost) {
      for (int64_t tap = 0; tap < e_.window; tap += kMost) {
        const Tile tile{channel, std::min(kMost, e_.out_channels - channel), tap,
                        std::min(kMost, e_.window - tap), lanes};
        body(tile);
        lanes += tile.channels * tile.taps * kLanes;
      }
    }
  }

  void AddSample(const float* image, const float* dy, float* sums) const {
    ForTiles([&](const Tile& tile) {
      kWeightTiles[static_cast<size_t>(tile.taps - 1)][static_cast<size_t>(tile.channels - 1)](
          {e_}, image, e_.taps.data() + tile.first_tap, dy + tile.first_channel * e_.places,
          sums + tile.lanes);
    });
  }

  void Finish(const Tile& tile, const float* sums, float* dweight) const {
    for (int64_t channel = 0; channel < tile.channels; ++channel) {
      for (int64_t tap = 0; tap < tile.taps; ++tap) {
        const float* from = sums + tile.lanes + (channel * tile.taps + tap) * kLanes;
        __m512 lanes = _mm512_loadu_ps(from);
        for (int64_t part = 1; part < parts_; ++part)
          lanes = _mm512_add_ps(lanes, _mm512_loadu_ps(from + part * sum_floats()));
        dweight[(tile.first_channel + channel) * e_.window + tile.first_tap + tap] = Total(lanes);
      }
    }
  }

  const int64_t parts_;
};

#pragma GCC pop_options

}  // namespace

std::unique_ptr<Primitive> DirectConv2d(const NodeSpec& node) {
  DirectExtents e(node.inputs[0].shape, node.inputs[1].shape, node.outputs[0].shape,
                  node.attributes);
  if (!UsesWideTiles() || !e.Fit()) return nullptr;
  return std::make_unique<DirectConv2dKernel>(std::move(e), node.inputs.size() == 3,
                                              node.attributes.Int("relu") != 0);
}

std::unique_ptr<Primitive> DirectConv2dGradWeight(const NodeSpec& node) {
  DirectExtents e(node.inputs[0].shape, node.outputs[0].shape, node.inputs[1].shape,
                  node.attributes);
  if (!UsesWideTiles() || !e.Fit()) return nullptr;
  return std::make_unique<DirectConv2dGradWeightKernel>(std::move(e));
}

}  // namespace ringmaster::kernels::vector
