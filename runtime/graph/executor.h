// Executor: a graph made ready to run, again and again, on this thread's device.
//
// Compile does all the thinking: it drops nodes that no output needs, computes equal ones once,
// fuses ops and chooses layouts (passes/passes.h), picks the first kernel that fits each node,
// plans one arena in which values with disjoint lives share memory, and writes a flat list of
// primitives with their pointers. Run walks that list: it looks nothing up, and allocates nothing
// of ours after the first call. (oneDNN's own execute call makes a small table of its arguments on
// the heap.)
//
// Forward and backward change nothing that lasts: parameters, states and inputs are memory that the
// caller binds and that Run only reads; everything computed is an output, applied by the caller.
//
//   RM_ASSIGN_OR_RETURN(auto executor, Executor::Compile(graph, {}));
//   RM_RETURN_IF_ERROR(executor->Bind("fc.weight", weight));     // once
//   RM_RETURN_IF_ERROR(executor->Bind("images", batch.images));  // when the memory changes
//   RM_RETURN_IF_ERROR(executor->Run({.seed = seed, .sample_positions = batch.positions}));
//   float loss = executor->Output("loss")->data<float>()[0];
//
// Where ops need what the other shards of a step have (OpDefinition::over_shards), each shard has
// an executor of its own, and whoever runs them adds up what all of them wait for:
//
//   for (Executor* shard : shards) RM_RETURN_IF_ERROR(shard->Start(contexts[shard]));
//   while (std::optional<ShardSum> sum = shards[0]->Advance()) {
//     ...Advance of the others, which wait for the same sum; then sum->total of each...
//   }
//
// Not thread-safe; distinct executors may run side by side. Run blocks until all outputs are there.
#ifndef RINGMASTER_RUNTIME_GRAPH_EXECUTOR_H_
#define RINGMASTER_RUNTIME_GRAPH_EXECUTOR_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/profile.h"
#include "runtime/kernels/kernel.h"
#include "runtime/tensor/tensor.h"

namespace ringmaster::device {
class Buffer;
}  // namespace ringmaster::device

namespace ringmaster::graph {

using kernels::RunContext;

// Outputs that lie in one piece of memory, which the caller binds as a whole (BindBlock): before
// an output is written, its place may hold other values.
struct OutputBlock {
  size_t bytes = 0;  // a multiple of device::kAlignment; 0: there is none
  // By the output's name: where it begins, a multiple too. Outputs that are not in it lie
  // elsewhere.
  std::map<std::string, size_t, std::less<>> offsets;
};

struct CompileOptions {
  // Which kernels may be chosen. Programs set it from RINGMASTER_FORCE_KERNELS.
  kernels::Selection kernels = kernels::Selection::kFastest;
  // In which layout images lie between ops that take it; values from outside and outputs are
  // row-major always.
  tensor::Layout images = kernels::FastestImageLayout();
  // Whether the passes run that leave out and join nodes (passes/passes.h), which changes no bit of
  // an output but in a sum behind a max pooling, of whose terms most are zeros: a gradient by a
  // bias or by the first weights. Off only to look for faults of theirs.
  bool optimise = true;
  // Bytes that the arena may take, beside the block; 0: as many as it likes. Where it would take
  // more, cheap nodes are computed again on the way back instead of kept (passes/recompute.h),
  // which changes no bit.
  size_t memory_budget = 0;
  // Where the arena would take more than so many bytes, that is done unasked as long as it costs
  // about a hundredth of the step's time; less is not worth any.
  size_t recompute_from = size_t{64} << 20;
  // Whether values with disjoint lives share memory, and results are written in place. Off only to
  // look for faults of the planner.
  bool reuse_memory = true;
  OutputBlock block = {};
  // Memory for the arena, shared by all that are compiled with it: it grows to what the largest of
  // them takes, and none may run, or wait in Advance, while another one does. Null: memory of its
  // own.
  std::shared_ptr<device::Buffer> arena = nullptr;
};

// Where numbers stop being finite in a run.
struct NonFinite {
  std::string name;        // the op's in the graph, or what was bound under that name
  std::string_view op;     // "conv2d_grad_weight"; empty for what was bound
  tensor::ValueSpec spec;  // of the values among which one is infinite or no number
};

// What a run waits for: the sum over all shards of what this one has, which is to be written to
// `total`, of the same size. Both are the executor's memory, until its next Advance.
struct ShardSum {
  std::string_view name;  // the op's in the graph
  std::span<const double> own;
  std::span<double> total;
};

class Executor {
 public:
  // Fixes the process's thread count (device/threads.h) if nothing has yet. Keeps no reference to
  // `graph`.
  //   graph.status()      when the graph has an error
  //   kInvalidArgument    the graph has no outputs, or not those of the block, or these overlap
  //   kUnimplemented      no kernel fits a node; the message names the node and its shapes
  //   kResourceExhausted  there is no memory for its values, or they do not fit into the budget; it
  //                       says how much they take
  static absl::StatusOr<std::unique_ptr<Executor>> Compile(const Graph& graph,
                                                           const CompileOptions& options);

  virtual ~Executor() = default;

  // Makes an input, parameter or state of the graph refer to the tensor's memory, which the caller
  // keeps alive and unmoved while it is bound. May be called again between runs; allocates nothing.
  //   kNotFound         the graph has no such value
  //   kInvalidArgument  the shape or type differs; the message has both
  // A name that the graph has but no output needs is accepted and ignored.
  virtual absl::Status Bind(std::string_view name, const tensor::Tensor& tensor) = 0;

  // Makes an output be written into the tensor's memory (a gradient bucket, say) instead of memory
  // of the executor's, which may hold what the output is made of before. It must not overlap
  // anything else that is bound. Same rules as Bind. kInvalidArgument for one of the block's.
  virtual absl::Status BindOutput(std::string_view name, tensor::Tensor& tensor) = 0;

  // Has the outputs of CompileOptions::block written into this memory, aligned as a device::Buffer,
  // instead of the executor's. A Run overwrites all of it: what no output lies in is undefined
  // afterwards. Rules as in BindOutput. kInvalidArgument for another size than the block's.
  virtual absl::Status BindBlock(std::span<std::byte> memory) = 0;

  // Has `call` called by every Run, on its thread, as soon as the output is as it will be; the
  // steps behind it run after `call` has returned. It is not called for an output that no step
  // writes. kNotFound for a name that is no output.
  virtual absl::Status OnComplete(std::string_view name, std::function<void()> call) = 0;

  // Computes all outputs. A shard whose ops need the others' is taken for the whole batch.
  //   kFailedPrecondition  something is not bound; the message names it
  //   kInvalidArgument     the graph draws random numbers per sample, and sample_positions is
  //                        not as long as its batch
  //   kResourceExhausted   the shared arena could not grow for another one, and is gone
  virtual absl::Status Run(const RunContext& context) = 0;

  // Begins a run that goes on with Advance; one in progress is given up. What the context refers to
  // must live until it ends. Errors are Run's.
  virtual absl::Status Start(const RunContext& context) = 0;

  // Runs up to the next op that needs what other shards have, and says what it waits for; once
  // `total` is written, Advance goes on. Nothing where all outputs are computed, or none was
  // started. The same graph waits for the same sums in the same order, whatever its shard's size.
  virtual std::optional<ShardSum> Advance() = 0;

  // Runs up to the first op that makes a number which is infinite or none, looking at all that is
  // bound, then at the results of each op: slower than Run, for a step that has gone wrong. Nothing
  // where all are finite. Sums over shards are those of the last run; where one of them is not
  // finite although this shard's part is, it is for another shard to explain, and there is nothing
  // either. OnComplete's calls are not made, and what outputs hold afterwards is undefined. Errors
  // are Run's.
  virtual absl::StatusOr<std::optional<NonFinite>> FindNonFinite(const RunContext& context) = 0;

  // A view of an output: what the last Run wrote. Stays valid, and is overwritten by the next Run.
  // kNotFound for a name that is no output.
  virtual absl::StatusOr<tensor::Tensor> Output(std::string_view name) = 0;

  // From now on every Run adds the time of each primitive to `profile`, which must outlive its use;
  // null ends that. Executors that run one after another may share a profile. It costs two looks at
  // the clock for each primitive.
  virtual void SetProfile(Profile* profile) = 0;

  // Bytes of the arena that it needs, scratch memory included but not the block, and what it would
  // be without reuse.
  virtual size_t arena_bytes() const = 0;
  virtual size_t arena_bytes_without_reuse() const = 0;

  // "<node>: <implementation>" for each primitive in order, as in "conv1: onednn/jit:avx2". Two
  // workers with equal lists, equal thread counts and equal machines compute equal bits.
  virtual std::vector<std::string> ImplementationNames() const = 0;
};

}  // namespace ringmaster::graph

#endif  // RINGMASTER_RUNTIME_GRAPH_EXECUTOR_H_
