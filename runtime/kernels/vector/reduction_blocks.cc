// The sum over all pixels for each channel, of an image in blocks: the gradient of a bias.
#include <immintrin.h>

#include "runtime/kernels/vector/blocks.h"
#include "runtime/kernels/vector/lanes.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

class ChannelSumsKernel : public VectorPrimitive {
 public:
  explicit ChannelSumsKernel(const NodeSpec& node) : walk_(node.inputs[0]) {}

  void Run(const Arguments& a) override {
    walk_.ForGroups([&](int64_t group) {
      const float* x = a.in<float>(0);
      __m256d low = _mm256_setzero_pd(), high = low;
      walk_.ForPixels(group, [&](int64_t at) {
        low = _mm256_add_pd(low, _mm256_cvtps_pd(_mm_loadu_ps(x + at)));
        high = _mm256_add_pd(high, _mm256_cvtps_pd(_mm_loadu_ps(x + at + kLane / 2)));
      });
      float* sums = a.out<float>(0) + group * kLane;
      _mm_storeu_ps(sums, _mm256_cvtpd_ps(low));
      _mm_storeu_ps(sums + kLane / 2, _mm256_cvtpd_ps(high));
    });
  }

 private:
  const LaneWalk walk_;
};

}  // namespace

std::unique_ptr<Primitive> SumToOfBlocks(const NodeSpec& node) {
  const tensor::Shape channels = {
      node.inputs[0].shape.rank() == 4 ? node.inputs[0].shape.dim(1) : 0, 1, 1};
  if (!LiesInBlocks(node) || !(node.outputs[0].shape == channels)) return nullptr;
  return std::make_unique<ChannelSumsKernel>(node);
}

}  // namespace ringmaster::kernels::vector
