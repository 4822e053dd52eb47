// The sum over all pixels for each channel, of an image in blocks: the gradient of a bias.
#include <algorithm>
#include <array>

#include "runtime/kernels/vector/blocks.h"
#include "runtime/kernels/vector/channel_lanes.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

template <int64_t kLanes>
class ChannelSumsKernel : public VectorPrimitive {
 public:
  explicit ChannelSumsKernel(const NodeSpec& node) : walk_(node.inputs[0]) {}

  void Run(const Arguments& a) override {
    walk_.ForGroups([&](int64_t group) {
      const float* x = a.in<float>(0);
      ChannelSums<kLanes> all;
      walk_.ForPixelsRead(group, std::array{x},
                          [&](int64_t at) { all.Add(Channels<kLanes>::Load(x + at)); });
      double sums[kLanes];
      all.Get(sums);
      std::copy_n(sums, kLanes, a.out<float>(0) + group * kLanes);
    });
  }

 private:
  const ChannelWalk<kLanes> walk_;
};

}  // namespace

std::unique_ptr<Primitive> SumToOfBlocks(const NodeSpec& node) {
  const tensor::Shape channels = {
      node.inputs[0].shape.rank() == 4 ? node.inputs[0].shape.dim(1) : 0, 1, 1};
  if (!LiesInBlocks(node) || !(node.outputs[0].shape == channels)) return nullptr;
  if (WalksSixteen(node.inputs[0])) return std::make_unique<ChannelSumsKernel<16>>(node);
  return std::make_unique<ChannelSumsKernel<8>>(node);
}

}  // namespace ringmaster::kernels::vector
