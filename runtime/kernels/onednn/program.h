// A kernel made of one or more oneDNN primitives run in order, such as reorder, convolution,
// reorder. Internal to kernels/onednn/: this header includes oneDNN's.
#ifndef RINGMASTER_RUNTIME_KERNELS_ONEDNN_PROGRAM_H_
#define RINGMASTER_RUNTIME_KERNELS_ONEDNN_PROGRAM_H_

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/onednn/weight_reorder.h"

namespace ringmaster::kernels::onednn {

// The process's CPU engine.
const dnnl::engine& CpuEngine();

// Attributes under which oneDNN takes its scratch memory from us.
dnnl::primitive_attr UserScratchpad();

// A dense row-major description.
dnnl::memory::desc Plain(const tensor::Shape& shape);
// As the value lies in memory.
dnnl::memory::desc Stored(const tensor::ValueSpec& spec);
// The same dims in whatever layout oneDNN likes best.
dnnl::memory::desc Any(const tensor::Shape& shape);

bool AllF32(const NodeSpec& node);

// Built once by the functions below, then run like any primitive. Methods may throw dnnl::error
// while building; wrap that in Build.
class Program final : public Primitive {
 public:
  // Buffers: the node's i-th input or output, or scratch. Each returns a number for AddStage.
  int Input(int i, const dnnl::memory::desc& desc);
  int Output(int i, const dnnl::memory::desc& desc);
  int Scratch(const dnnl::memory::desc& desc);

  // `buffer` in the layout `wanted`: itself, or a scratch copy made by a reorder before what is
  // added next.
  int Reordered(int buffer, const dnnl::memory::desc& wanted);
  // The same for an image, whose copy is counted.
  int ReorderedImage(int buffer, const dnnl::memory::desc& wanted);

  // A primitive with its arguments (DNNL_ARG_..., buffer). `pd` is its description, from which come
  // the name and the size of its scratchpad.
  using ArgumentList = std::initializer_list<std::pair<int, int>>;
  template <typename P>
  void Compute(const typename P::primitive_desc& pd, ArgumentList arguments) {
    name_ += std::string(name_.empty() ? "onednn/" : "+") + pd.impl_info_str();
    AddStage(P(pd), pd.scratchpad_desc(), arguments);
    stages_.back().computes = true;
  }
  // Copies between layouts.
  void Reorder(int from, int to);
  // The same for an image that has been computed, unless it lies in its place already.
  void FinishImage(int from, int to);
  // Takes the positive part of a buffer in its place. A primitive's own post-operation would be
  // free, but it turns what is no number into 0 (jit:avx2), or other bits than ours come out
  // (gemm).
  void KeepPositive(int buffer);

  // Takes out all that Compute has not added: copies between layouts and ReLUs. What is left works
  // on undefined values, and as fast as if its operands lay as it likes them.
  void KeepComputationsOnly();

  void Run(const Arguments& arguments) override;
  size_t scratch_bytes() const override { return scratch_bytes_; }
  size_t reordered_bytes() const override { return reordered_bytes_; }
  // The computing primitives', or that there are none.
  std::string name() const override;

 private:
  enum class Place { kInput, kOutput, kScratch };
  struct Buffer {
    Place place;
    size_t index;  // of the input or output, or the offset in scratch
    dnnl::memory memory;
    void* pointer = nullptr;  // what `memory` refers to now
  };
  struct Stage {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> arguments;
    // Instead of the primitive: from one buffer to another, or in one.
    std::optional<WeightReorder> reorder{};
    bool keeps_positive = false;
    size_t from = 0, to = 0;
    bool computes = false;  // added by Compute
  };

  int AddBuffer(Place place, size_t index, const dnnl::memory::desc& desc);
  void AddStage(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
                ArgumentList arguments);
  dnnl::memory::desc DescOf(int buffer) const {
    return buffers_[static_cast<size_t>(buffer)].memory.get_desc();
  }

  std::string name_;
  std::vector<Buffer> buffers_;
  std::vector<Stage> stages_;
  size_t scratch_bytes_ = 0;
  size_t reordered_bytes_ = 0;
  bool has_run_ = false;
  dnnl::stream stream_{CpuEngine()};
};

// Runs `build(program)`; null when oneDNN has no implementation for what it asks.
template <typename Builder>
std::unique_ptr<Primitive> Build(const NodeSpec& node, const Builder& build) {
  if (!AllF32(node)) return nullptr;
  try {
    auto program = std::make_unique<Program>();
    build(*program);
    return program;
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

}  // namespace ringmaster::kernels::onednn

#endif  // RINGMASTER_RUNTIME_KERNELS_ONEDNN_PROGRAM_H_
