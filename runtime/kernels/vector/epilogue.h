// What our convolutions make of their sums where they write them, which another op would read all
// of the result again for. Internal to this folder.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_EPILOGUE_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_EPILOGUE_H_

#include <cstddef>
#include <cstdint>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/batch_norm.h"

namespace ringmaster::kernels::vector {

// A sum times its channel's slope plus its channel's offset, rounded once, plus the addend; in that
// order. Each may be null: it is left out.
struct Epilogue {
  const float* slope = nullptr;   // by channel of the result; never without an offset
  const float* offset = nullptr;  // by channel of the result; alone it is a bias
  const float* addend = nullptr;  // as large as the result, and lying as it does

  // Of channels from that one on, and from that place of the result on.
  Epilogue At(int64_t channel, int64_t place) const {
    const auto later = [](const float* from, int64_t by) {
      return from == nullptr ? nullptr : from + by;
    };
    return {later(slope, channel), later(offset, channel), later(addend, place)};
  }
};

// The batch norm behind a convolution, of a node with the inputs (x, weight, gamma, beta, mean,
// variance[, addend]), whose result is in blocks. It has the bits of the batch norm's own kernels.
class BatchNormEpilogue {
 public:
  explicit BatchNormEpilogue(const NodeSpec& node)
      : channels_(node.outputs[0].shape.dim(1)),
        epsilon_(node.attributes.Real("epsilon")),
        has_addend_(node.inputs.size() > kAddend) {}

  // Whether such a node's addend, if it has one, lies as its result does.
  static bool Takes(const NodeSpec& node) {
    return node.inputs.size() <= kAddend || node.inputs[kAddend].layout == node.outputs[0].layout;
  }

  // Memory for Make.
  size_t bytes() const { return static_cast<size_t>(2 * channels_) * sizeof(float); }
  // Of one run, in that memory.
  Epilogue Make(const Arguments& a, float* memory) const {
    float *const slopes = memory, *const offsets = memory + channels_;
    for (int64_t c = 0; c < channels_; ++c) {
      const BatchAffine f(a.in<float>(2)[c], a.in<float>(3)[c], a.in<float>(4)[c],
                          a.in<float>(5)[c], epsilon_);
      slopes[c] = f.slope;
      offsets[c] = f.offset;
    }
    return {slopes, offsets, has_addend_ ? a.in<float>(kAddend) : nullptr};
  }

 private:
  static constexpr size_t kAddend = 6;

  int64_t channels_;
  double epsilon_;
  bool has_addend_;
};

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_EPILOGUE_H_
