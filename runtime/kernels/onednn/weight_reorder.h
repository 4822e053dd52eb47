// Reorders of convolution weights between rows and oneDNN's blocks of 8 x 8 channels, several times
// as fast as the library's own: a step makes four for each convolution, whatever its batch.
// Internal to kernels/onednn/.
#ifndef RINGMASTER_RUNTIME_KERNELS_ONEDNN_WEIGHT_REORDER_H_
#define RINGMASTER_RUNTIME_KERNELS_ONEDNN_WEIGHT_REORDER_H_

#include <cstdint>
#include <optional>

#include <oneapi/dnnl/dnnl.hpp>

namespace ringmaster::kernels::onednn {

class WeightReorder {
 public:
  // None where the processor or the layouts are others: f32 [O, I, h, w] in rows, and as OIhw8i8o
  // or OIhw8o8i (from rows only) on the other side.
  static std::optional<WeightReorder> Between(const dnnl::memory::desc& from,
                                              const dnnl::memory::desc& to);

  // Neither may overlap the other.
  void Run(const float* from, float* to) const;

 private:
  enum class Kind { kRowsToInputsOutputs, kInputsOutputsToRows, kRowsToOutputsInputs };

  WeightReorder(Kind kind, const dnnl::memory::dims& dims);

  Kind kind_;
  int64_t outputs_, inputs_;  // blocks of channels
  int64_t taps_;              // h * w
};

}  // namespace ringmaster::kernels::onednn

#endif  // RINGMASTER_RUNTIME_KERNELS_ONEDNN_WEIGHT_REORDER_H_
