// What a kernel is: a way to compute one op, prepared once for fixed shapes and then run many
// times.
//
// An Implementation is asked to prepare a Primitive for a node (NodeSpec). It answers with one, or
// with null when the node's types, shapes or attributes do not fit it. For each op there is one
// ordered list of implementations, fastest first, the reference last
// (kernels/implementation_list.cc, after oneDNN's src/cpu/cpu_eltwise_list.cpp); the first that
// fits wins.
//
// Rules for every implementation:
//   - for a fixed node, thread count and machine the same bits come out of every run;
//   - Run neither allocates, nor looks anything up, nor keeps state between calls;
//   - inputs and outputs never overlap, but where MayOverwrite says so; everything an output holds
//     is written;
//   - it takes the layouts that the node has, or declines;
//   - sums over samples are sums, never means.
#ifndef RINGMASTER_RUNTIME_KERNELS_KERNEL_H_
#define RINGMASTER_RUNTIME_KERNELS_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/kernels/attributes.h"
#include "runtime/tensor/shape.h"

namespace ringmaster::kernels {

// What a run needs beside tensors. The arrays belong to the caller and live until the run returns.
struct RunContext {
  // The job's seed.
  uint64_t seed = 0;
  // For each sample of the batch, its position in the sample stream (epoch * samples + place), so
  // that a random mask depends on the sample and never on the rank or shard that computes it.
  std::span<const uint64_t> sample_positions;
};

// A node as a kernel sees it. Valid only during the call that receives it.
struct NodeSpec {
  std::string_view op;
  const Attributes& attributes;
  std::span<const tensor::ValueSpec> inputs;
  std::span<const tensor::ValueSpec> outputs;
};

// The memory of one run. `scratch` has the primitive's scratch_bytes(), aligned, contents
// undefined.
struct Arguments {
  const void* const* inputs;
  void* const* outputs;
  void* scratch;
  const RunContext* context;

  template <typename T>
  const T* in(int i) const {
    return static_cast<const T*>(inputs[i]);
  }
  template <typename T>
  T* out(int i) const {
    return static_cast<T*>(outputs[i]);
  }
};

// A node made ready. One thread at a time may run it.
class Primitive {
 public:
  virtual ~Primitive() = default;
  // Computes every output. Blocks until done. Cannot fail: whatever can be wrong was refused
  // earlier.
  virtual void Run(const Arguments& arguments) = 0;
  // Memory that Run wants beside inputs and outputs.
  virtual size_t scratch_bytes() const { return 0; }
  // Whether that output may lie exactly where that input lies, if their specs are the same: before
  // Run writes a place it has made every read of it. Of which inputs this holds may also be the
  // same memory.
  virtual bool MayOverwrite(int /*input*/, int /*output*/) const { return false; }
  // Bytes of images that Run copies from one layout into another, before or behind what it is for.
  virtual size_t reordered_bytes() const { return 0; }
  // Which code this is, down to what the bits may depend on, as in "onednn/jit:avx2".
  virtual std::string name() const = 0;
};

// Which implementations may be chosen.
enum class Selection {
  kFastest,    // the first that fits
  kReference,  // only reference kernels
  kOneDnn,     // oneDNN where it has the op and it fits, else the reference
};

enum class Family { kReference, kOneDnn, kVector };

struct Implementation {
  Family family;
  // A primitive for the node, or null when it does not fit.
  std::unique_ptr<Primitive> (*prepare)(const NodeSpec& node);
};

// The implementations of an op, fastest first; empty for an unknown op.
std::span<const Implementation> ImplementationsOf(std::string_view op);

// The first implementation that `selection` allows and that fits, or null.
std::unique_ptr<Primitive> Prepare(const NodeSpec& node, Selection selection);

// Whether one of the vector kernels fits.
bool TakesVectors(const NodeSpec& node);

// Whether all inputs and outputs are row-major.
bool IsRowMajor(const NodeSpec& node);
// Whether all of them have one layout.
bool LieAlike(const NodeSpec& node);

// The layout of images in which this processor convolves fastest. Row-major: it has no other.
tensor::Layout FastestImageLayout();

// Parses "", "fastest", "reference" or "onednn" (as RINGMASTER_FORCE_KERNELS has them). False for
// others.
bool ParseSelection(std::string_view text, Selection* selection);

}  // namespace ringmaster::kernels

#endif  // RINGMASTER_RUNTIME_KERNELS_KERNEL_H_
