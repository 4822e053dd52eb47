// Kernels over images whose channels lie in blocks (tensor::Layout). Internal to kernels/vector/.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_BLOCKS_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_BLOCKS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/fit.h"

namespace ringmaster::kernels::vector {

// Null where the node's images do not lie in blocks.
std::unique_ptr<Primitive> BatchMomentsOfBlocks(const NodeSpec& node);
std::unique_ptr<Primitive> BatchNormOfBlocks(const NodeSpec& node);
std::unique_ptr<Primitive> BatchNormAddReluGradOfBlocks(const NodeSpec& node);
std::unique_ptr<Primitive> BatchNormAgainOfBlocks(const NodeSpec& node);
std::unique_ptr<Primitive> BatchNormGradOfBlocks(const NodeSpec& node);
std::unique_ptr<Primitive> BatchNormSumsOfBlocks(const NodeSpec& node);
std::unique_ptr<Primitive> BatchNormSynchronisedGradOfBlocks(const NodeSpec& node);
std::unique_ptr<Primitive> MaxPool2dOfBlocks(const NodeSpec& node);
std::unique_ptr<Primitive> MaxPool2dGradOfBlocks(const NodeSpec& node);
std::unique_ptr<Primitive> MaxPool2dTapsOfBlocks(const NodeSpec& node);
std::unique_ptr<Primitive> MaxPool2dTapsGradOfBlocks(const NodeSpec& node);
std::unique_ptr<Primitive> SumToOfBlocks(const NodeSpec& node);

// Whether all images ([N, C, H, W]) among inputs and outputs lie in the same blocks.
bool HasBlocksOnly(const NodeSpec& node);
// The same, and all inputs and outputs are f32.
bool LiesInBlocks(const NodeSpec& node);
// The same, but for places within windows, u8, which are no images.
bool LiesInBlocksWithTaps(const NodeSpec& node);

// Whether a walk over all pixels should take sixteen channels at a time: where so many lie side by
// side, walks over eight touch each line of the cache twice. Not where threads would then find
// nothing to do.
bool WalksSixteen(const tensor::ValueSpec& image);

// Walks over an image [N, C, H, W] in blocks, as many channels at a time, which are eight or, of
// blocks that have them, sixteen.
template <int64_t kLanes>
class ChannelWalk {
 public:
  explicit ChannelWalk(const tensor::ValueSpec& image)
      : batch_(image.shape.dim(0)),
        channels_(image.shape.dim(1)),
        plane_(image.shape.dim(2) * image.shape.dim(3)),
        block_(static_cast<int64_t>(image.layout)) {}

  int64_t batch() const { return batch_; }
  int64_t groups() const { return channels_ / kLanes; }  // of kLanes channels
  int64_t plane() const { return plane_; }
  int64_t step() const { return block_; }  // floats from one pixel to the next

  // Where the group's first pixel lies in a sample, in floats.
  int64_t Begin(int64_t sample, int64_t group) const {
    const int64_t channel = group * kLanes;
    return (sample * channels_ + channel / block_ * block_) * plane_ + channel % block_;
  }

  // Calls body(group) for all, side by side.
  template <typename Body>
  void ForGroups(const Body& body) const {
    device::ParallelFor(groups(), batch_ * plane_ * kLanes, body);
  }

  // Calls body(place of a pixel's first lane, in floats) for all pixels of the group, samples in
  // order.
  template <typename Body>
  void ForPixels(int64_t group, const Body& body) const {
    ForPixelsRead(group, std::array<const float*, 0>{}, body);
  }
  // The same for a body that only reads, from these images, which are fetched ahead: left to
  // itself, a processor may follow one such stream at half of memory's pace. (Where a body writes,
  // too, asking for more costs as much as it gains.)
  template <typename Body, size_t kImages>
  void ForPixelsRead(int64_t group, const std::array<const float*, kImages>& images,
                     const Body& body) const {
    for (int64_t n = 0; n < batch_; ++n) {
      const int64_t begin = Begin(n, group), end = begin + plane_ * block_;
      const int64_t beyond = n + 1 < batch_ ? Begin(n + 1, group) - end : 0;
      for (int64_t at = begin; at < end; at += block_) {
        const int64_t next = at + kAhead < end ? at + kAhead : at + kAhead + beyond;
        for (const float* image : images) __builtin_prefetch(image + next);
        body(at);
      }
    }
  }

 private:
  // Floats: 32 lines of the cache.
  static constexpr int64_t kAhead = 512;

  int64_t batch_, channels_, plane_, block_;
};

// The channels of a vector.
using LaneWalk = ChannelWalk<8>;

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_BLOCKS_H_
