// Batch norm where channels are lanes of vectors: each lane adds up its own channel, in double and
// in the order of the samples. Memory is what it costs: one pass for the statistics, one for the
// result, with the addend and ReLU in the same pass. All channels of a line of the cache go
// together, so that each line is read and written once in a pass.
#include <array>

#include "runtime/kernels/vector/batch_norm.h"
#include "runtime/kernels/vector/blocks.h"
#include "runtime/kernels/vector/channel_lanes.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// kLanes channels' BatchAffine.
template <int64_t kLanes>
struct LaneAffine {
  Channels<kLanes> slope, offset;

  LaneAffine(const float* gamma, const float* beta, const float* mean, const float* variance,
             double epsilon) {
    float slopes[kLanes], offsets[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      const BatchAffine f(gamma[i], beta[i], mean[i], variance[i], epsilon);
      slopes[i] = f.slope;
      offsets[i] = f.offset;
    }
    slope = Channels<kLanes>::Load(slopes);
    offset = Channels<kLanes>::Load(offsets);
  }
  Channels<kLanes> operator()(Channels<kLanes> x) const { return MultiplyAdd(x, slope, offset); }
};

// The gradient by x of kLanes channels, from BatchGradient's coefficients.
template <int64_t kLanes>
struct LaneGradient {
  Channels<kLanes> slope, along, offset;

  // `coefficients` gives the i-th channel's BatchGradient.
  template <typename Coefficients>
  explicit LaneGradient(const Coefficients& coefficients) {
    float slopes[kLanes], alongs[kLanes], offsets[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      const BatchGradient g = coefficients(i);
      slopes[i] = g.slope;
      alongs[i] = g.along;
      offsets[i] = g.offset;
    }
    slope = Channels<kLanes>::Load(slopes);
    along = Channels<kLanes>::Load(alongs);
    offset = Channels<kLanes>::Load(offsets);
  }
  // `centred` is x less its mean.
  Channels<kLanes> operator()(Channels<kLanes> centred, Channels<kLanes> dy) const {
    return MultiplyAdd(slope, dy, MultiplyAdd(along, centred, offset));
  }
};

template <int64_t kLanes>
class BlocksKernel : public VectorPrimitive {
 protected:
  using Lanes = Channels<kLanes>;
  using Sums = ChannelSums<kLanes>;

  explicit BlocksKernel(const NodeSpec& node)
      : walk_(node.inputs[0]), epsilon_(node.attributes.Real("epsilon")) {}

  double count() const { return static_cast<double>(walk_.batch() * walk_.plane()); }

  const ChannelWalk<kLanes> walk_;
  const double epsilon_;
};

// How batch norm's result follows from statistics, with an addend, behind the other inputs, and
// ReLU where the node has them.
template <int64_t kLanes>
class NormaliseBlocksKernel : public BlocksKernel<kLanes> {
 public:
  // x or the addend by y.
  bool MayOverwrite(int input, int output) const override {
    return (input == 0 || input == addend_) && output == 0;
  }

 protected:
  using typename BlocksKernel<kLanes>::Lanes;

  NormaliseBlocksKernel(const NodeSpec& node, size_t addend)
      : BlocksKernel<kLanes>(node),
        addend_(static_cast<int>(addend)),
        has_addend_(node.inputs.size() > addend),
        relu_(node.attributes.Int("relu") != 0) {}

  // Of all channels, the means and variances.
  void Normalise(const Arguments& a, int64_t group, const float* means,
                 const float* variances) const {
    const int64_t c = group * kLanes;
    const LaneAffine<kLanes> f(a.in<float>(1) + c, a.in<float>(2) + c, means + c, variances + c,
                               this->epsilon_);
    const float* x = a.in<float>(0);
    float* y = a.out<float>(0);
    const auto finish = [&](int64_t at, Lanes sum) {
      (relu_ ? PositivePart(sum) : sum).Store(y + at);
    };
    if (has_addend_) {
      const float* addend = a.in<float>(addend_);
      this->walk_.ForPixels(group, [&](int64_t at) {
        finish(at, f(Lanes::Load(x + at)) + Lanes::Load(addend + at));
      });
    } else {
      this->walk_.ForPixels(group, [&](int64_t at) { finish(at, f(Lanes::Load(x + at))); });
    }
  }

 private:
  const int addend_;
  const bool has_addend_, relu_;
};

// (x, gamma, beta, mean, variance[, addend]) -> y.
template <int64_t kLanes>
class BatchNormAgainBlocksKernel : public NormaliseBlocksKernel<kLanes> {
 public:
  explicit BatchNormAgainBlocksKernel(const NodeSpec& node)
      : NormaliseBlocksKernel<kLanes>(node, 5) {}

  void Run(const Arguments& a) override {
    this->walk_.ForGroups(
        [&](int64_t group) { this->Normalise(a, group, a.in<float>(3), a.in<float>(4)); });
  }
};

// (x, gamma, beta[, addend]) -> (y, mean, variance).
template <int64_t kLanes>
class BatchNormBlocksKernel : public NormaliseBlocksKernel<kLanes> {
 public:
  explicit BatchNormBlocksKernel(const NodeSpec& node) : NormaliseBlocksKernel<kLanes>(node, 3) {}

  void Run(const Arguments& a) override {
    this->walk_.ForGroups([&](int64_t group) {
      Statistics(a, group);
      this->Normalise(a, group, a.out<float>(1), a.out<float>(2));
    });
  }

 private:
  using typename BlocksKernel<kLanes>::Lanes;
  using typename BlocksKernel<kLanes>::Sums;

  // In one pass, of the differences to each channel's first element: what is then subtracted is
  // small, and the sums are in double.
  void Statistics(const Arguments& a, int64_t group) const {
    const float* x = a.in<float>(0);
    const float* const firsts = x + this->walk_.Begin(0, group);
    const Lanes first = Lanes::Load(firsts);
    Sums sums, squares;
    this->walk_.ForPixelsRead(group, std::array{x}, [&](int64_t at) {
      const Lanes d = Lanes::Load(x + at) - first;
      sums.Add(d);
      squares.AddProduct(d, d);
    });
    double sum[kLanes], square[kLanes];
    sums.Get(sum);
    squares.Get(square);
    for (int64_t i = 0; i < kLanes; ++i) {
      const double mean = sum[i] / this->count();
      a.out<float>(1)[group * kLanes + i] =
          static_cast<float>(static_cast<double>(firsts[i]) + mean);
      // Not std::max, which would make 0 of what is no number.
      const double variance = square[i] / this->count() - mean * mean;
      a.out<float>(2)[group * kLanes + i] = static_cast<float>(variance < 0 ? 0.0 : variance);
    }
  }
};

// x -> what a shard adds to the sums of all: see the reference kernel.
template <int64_t kLanes>
class BatchMomentsBlocksKernel : public BlocksKernel<kLanes> {
 public:
  explicit BatchMomentsBlocksKernel(const NodeSpec& node) : BlocksKernel<kLanes>(node) {}

  void Run(const Arguments& a) override {
    const float* x = a.in<float>(0);
    double* const all = a.out<double>(0);
    const int64_t channels = this->walk_.groups() * kLanes;
    this->walk_.ForGroups([&](int64_t group) {
      Sums sums, squares;
      this->walk_.ForPixelsRead(group, std::array{x}, [&](int64_t at) {
        const Lanes values = Lanes::Load(x + at);
        sums.Add(values);
        squares.AddProduct(values, values);
      });
      sums.Get(all + group * kLanes);
      squares.Get(all + channels + group * kLanes);
    });
    all[2 * channels] = this->count();
  }

 private:
  using typename BlocksKernel<kLanes>::Lanes;
  using typename BlocksKernel<kLanes>::Sums;
};

// (x, mean, variance, dy) -> (what a shard adds to the sums of the gradient by x, dgamma, dbeta).
template <int64_t kLanes>
class BatchNormSumsBlocksKernel : public BlocksKernel<kLanes> {
 public:
  explicit BatchNormSumsBlocksKernel(const NodeSpec& node) : BlocksKernel<kLanes>(node) {}

  void Run(const Arguments& a) override {
    const float *x = a.in<float>(0), *dy = a.in<float>(3);
    double* const all = a.out<double>(0);
    const int64_t channels = this->walk_.groups() * kLanes;
    this->walk_.ForGroups([&](int64_t group) {
      const int64_t first = group * kLanes;
      const Lanes mean = Lanes::Load(a.in<float>(1) + first);
      Sums sums, projections;
      this->walk_.ForPixelsRead(group, std::array{x, dy}, [&](int64_t at) {
        const Lanes gradient = Lanes::Load(dy + at);
        sums.Add(gradient);
        projections.AddProduct(gradient, Lanes::Load(x + at) - mean);
      });
      sums.Get(all + first);
      projections.Get(all + channels + first);
      for (int64_t c = first; c < first + kLanes; ++c) {
        const double rstd =
            1.0 / std::sqrt(static_cast<double>(a.in<float>(2)[c]) + this->epsilon_);
        a.out<float>(1)[c] = static_cast<float>(rstd * all[channels + c]);
        a.out<float>(2)[c] = static_cast<float>(all[c]);
      }
    });
    all[2 * channels] = this->count();
  }

 private:
  using typename BlocksKernel<kLanes>::Lanes;
  using typename BlocksKernel<kLanes>::Sums;
};

// (x, gamma, mean, variance, dy, those sums of all shards) -> dx.
template <int64_t kLanes>
class BatchNormSynchronisedGradBlocksKernel : public BlocksKernel<kLanes> {
 public:
  explicit BatchNormSynchronisedGradBlocksKernel(const NodeSpec& node)
      : BlocksKernel<kLanes>(node) {}

  // x or dy by dx.
  bool MayOverwrite(int input, int output) const override {
    return (input == 0 || input == 4) && output == 0;
  }

  void Run(const Arguments& a) override {
    const float *x = a.in<float>(0), *dy = a.in<float>(4);
    const double* const all = a.in<double>(5);
    const int64_t channels = this->walk_.groups() * kLanes;
    float* dx = a.out<float>(0);
    this->walk_.ForGroups([&](int64_t group) {
      const int64_t first = group * kLanes;
      const LaneGradient<kLanes> gradient([&](int64_t i) {
        const int64_t c = first + i;
        return BatchGradient(a.in<float>(1)[c], a.in<float>(3)[c], this->epsilon_, all[c],
                             all[channels + c], all[2 * channels]);
      });
      const Lanes mean = Lanes::Load(a.in<float>(2) + first);
      this->walk_.ForPixels(group, [&](int64_t at) {
        gradient(Lanes::Load(x + at) - mean, Lanes::Load(dy + at)).Store(dx + at);
      });
    });
  }

 private:
  using typename BlocksKernel<kLanes>::Lanes;
};

// The gradient of batch norm: (x, gamma, mean, variance, ...) -> (dx, dgamma, dbeta, ...).
template <int64_t kLanes>
class GradBlocksKernel : public BlocksKernel<kLanes> {
 protected:
  using typename BlocksKernel<kLanes>::Lanes;

  explicit GradBlocksKernel(const NodeSpec& node) : BlocksKernel<kLanes>(node) {}

  // Of one group. `first` and `again` give dy from a pixel's place and its x, in the pass for the
  // sums and then in the one for dx. `read`: the images that the former only reads.
  template <size_t kImages, typename First, typename Again>
  void RunGroup(const Arguments& a, int64_t group, const std::array<const float*, kImages>& read,
                const First& first, const Again& again) const {
    const int64_t c = group * kLanes;
    const float *x = a.in<float>(0), *gamma = a.in<float>(1) + c, *variance = a.in<float>(3) + c;
    const Lanes mean = Lanes::Load(a.in<float>(2) + c);
    ChannelSums<kLanes> sums, projections;
    this->walk_.ForPixelsRead(group, read, [&](int64_t at) {
      const Lanes value = Lanes::Load(x + at), dy = first(at, value);
      sums.Add(dy);
      projections.AddProduct(dy, value - mean);
    });
    double sum[kLanes], projection[kLanes];
    sums.Get(sum);
    projections.Get(projection);
    const LaneGradient<kLanes> gradient([&](int64_t i) {
      const BatchGradient g(gamma[i], variance[i], this->epsilon_, sum[i], projection[i],
                            this->count());
      a.out<float>(1)[c + i] = static_cast<float>(g.dgamma);
      a.out<float>(2)[c + i] = static_cast<float>(g.dbeta);
      return g;
    });
    float* dx = a.out<float>(0);
    this->walk_.ForPixels(group, [&](int64_t at) {
      const Lanes value = Lanes::Load(x + at);
      gradient(value - mean, again(at, value)).Store(dx + at);
    });
  }
};

// (x, gamma, mean, variance, dy), or of the positive part with beta behind it.
template <int64_t kLanes>
class BatchNormGradBlocksKernel : public GradBlocksKernel<kLanes> {
 public:
  explicit BatchNormGradBlocksKernel(const NodeSpec& node)
      : GradBlocksKernel<kLanes>(node), relu_(node.attributes.Int("relu") != 0) {}

  // x or dy by dx: the sums of a group come first.
  bool MayOverwrite(int input, int output) const override {
    return (input == 0 || input == 4) && output == 0;
  }

  void Run(const Arguments& a) override {
    const float* dy = a.in<float>(4);
    const std::array read{a.in<float>(0), dy};
    this->walk_.ForGroups([&](int64_t group) {
      if (!relu_) {
        const auto gradient = [dy](int64_t at, Lanes /*value*/) { return Lanes::Load(dy + at); };
        this->RunGroup(a, group, read, gradient, gradient);
        return;
      }
      const int64_t c = group * kLanes;
      const LaneAffine<kLanes> f(a.in<float>(1) + c, a.in<float>(5) + c, a.in<float>(2) + c,
                                 a.in<float>(3) + c, this->epsilon_);
      const auto gradient = [&](int64_t at, Lanes value) {
        return WherePositive(f(value), Lanes::Load(dy + at));
      };
      this->RunGroup(a, group, read, gradient, gradient);
    });
  }

 private:
  using typename BlocksKernel<kLanes>::Lanes;

  const bool relu_;
};

// (x, gamma, mean, variance, y, dy[, dy2]) -> (dx, dgamma, dbeta, daddend): what passes where y is
// positive is written once and, for dx, found in the cache.
template <int64_t kLanes>
class BatchNormAddReluGradBlocksKernel : public GradBlocksKernel<kLanes> {
 public:
  explicit BatchNormAddReluGradBlocksKernel(const NodeSpec& node)
      : GradBlocksKernel<kLanes>(node), has_second_(node.inputs.size() == 7) {}

  // Whatever lies there by dx: the sums of a group come first. All but x, which is read once more,
  // by the addend's gradient.
  bool MayOverwrite(int input, int output) const override {
    return (output == 0 && input == 0) || ((output == 0 || output == 3) && input >= 4);
  }

  void Run(const Arguments& a) override {
    const float *y = a.in<float>(4), *dy = a.in<float>(5);
    float* passed = a.out<float>(3);
    constexpr std::array<const float*, 0> kNone{};  // that pass also writes
    const auto again = [passed](int64_t at, Lanes /*value*/) { return Lanes::Load(passed + at); };
    const auto pass = [y, passed](int64_t at, Lanes gradient) {
      const Lanes d = WherePositive(Lanes::Load(y + at), gradient);
      d.Store(passed + at);
      return d;
    };
    this->walk_.ForGroups([&](int64_t group) {
      if (has_second_) {
        const auto first = [&, dy2 = a.in<float>(6)](int64_t at, Lanes /*value*/) {
          return pass(at, Lanes::Load(dy + at) + Lanes::Load(dy2 + at));
        };
        this->RunGroup(a, group, kNone, first, again);
      } else {
        const auto first = [&](int64_t at, Lanes /*value*/) {
          return pass(at, Lanes::Load(dy + at));
        };
        this->RunGroup(a, group, kNone, first, again);
      }
    });
  }

 private:
  using typename BlocksKernel<kLanes>::Lanes;

  const bool has_second_;
};

template <template <int64_t> class Kernel>
std::unique_ptr<Primitive> Make(const NodeSpec& node) {
  if (WalksSixteen(node.inputs[0])) return std::make_unique<Kernel<16>>(node);
  return std::make_unique<Kernel<8>>(node);
}

}  // namespace

std::unique_ptr<Primitive> BatchMomentsOfBlocks(const NodeSpec& node) {
  if (!FitsWithSums(node) || !HasBlocksOnly(node)) return nullptr;
  return Make<BatchMomentsBlocksKernel>(node);
}

std::unique_ptr<Primitive> BatchNormSumsOfBlocks(const NodeSpec& node) {
  if (!FitsWithSums(node) || !HasBlocksOnly(node)) return nullptr;
  return Make<BatchNormSumsBlocksKernel>(node);
}

std::unique_ptr<Primitive> BatchNormSynchronisedGradOfBlocks(const NodeSpec& node) {
  if (!FitsWithSums(node) || !HasBlocksOnly(node)) return nullptr;
  return Make<BatchNormSynchronisedGradBlocksKernel>(node);
}

std::unique_ptr<Primitive> BatchNormOfBlocks(const NodeSpec& node) {
  if (!LiesInBlocks(node)) return nullptr;
  return Make<BatchNormBlocksKernel>(node);
}

std::unique_ptr<Primitive> BatchNormAgainOfBlocks(const NodeSpec& node) {
  if (!LiesInBlocks(node)) return nullptr;
  return Make<BatchNormAgainBlocksKernel>(node);
}

std::unique_ptr<Primitive> BatchNormAddReluGradOfBlocks(const NodeSpec& node) {
  if (!LiesInBlocks(node)) return nullptr;
  return Make<BatchNormAddReluGradBlocksKernel>(node);
}

std::unique_ptr<Primitive> BatchNormGradOfBlocks(const NodeSpec& node) {
  if (!LiesInBlocks(node)) return nullptr;
  return Make<BatchNormGradBlocksKernel>(node);
}

}  // namespace ringmaster::kernels::vector
