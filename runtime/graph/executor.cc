#include "runtime/graph/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"
#include "common/text.h"
#include "runtime/device/memory.h"
#include "runtime/device/pages.h"
#include "runtime/device/threads.h"
#include "runtime/graph/autodiff.h"
#include "runtime/graph/op_definition.h"
#include "runtime/graph/plan.h"
#include "runtime/tensor/finite.h"

namespace ringmaster::graph {
namespace {

using tensor::Tensor;

bool IsFinite(const void* data, const ValueSpec& spec) {
  const auto all = [&]<typename Float>(const Float* values) {
    return tensor::AllFinite(std::span(values, spec.bytes() / sizeof(Float)));
  };
  if (spec.dtype == DType::kF32) return all(static_cast<const float*>(data));
  if (spec.dtype == DType::kF64) return all(static_cast<const double*>(data));
  return true;
}

absl::Status NoMemoryFor(size_t bytes) {
  return absl::ResourceExhaustedError(fmt::format(
      "the graph needs {} bytes of memory for its values; the system has none left to give",
      bytes));
}

// The places in the steps' argument lists that hold one address.
struct Pointers {
  std::vector<const void**> readers;
  std::vector<void**> writers;  // several where one step writes over another's result

  void Point(void* p) const {
    for (const void** reader : readers) *reader = p;
    for (void** writer : writers) *writer = p;
  }
  void Add(const void** reader, void** writer) {
    if (reader != nullptr) readers.push_back(reader);
    if (writer != nullptr) writers.push_back(writer);
  }
};

// Memory that the caller may bind.
struct Slot {
  std::string name;
  ValueSpec spec;
  void* pointer = nullptr;
  Pointers pointers;       // writers: of outputs only
  bool needed = false;     // whether any step reads or writes it
  size_t last_writer = 0;  // the step after which it is complete, counted from 1; 0: none

  void Point(void* p) {
    pointer = p;
    pointers.Point(p);
  }
};

struct Step {
  std::string name;
  std::string_view op;
  std::unique_ptr<kernels::Primitive> primitive;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<ValueSpec> output_specs;
  void* scratch = nullptr;
  std::vector<std::function<void()>> then;  // see Executor::OnComplete
  // Where it needs what other shards have: what Advance was given last.
  bool over_shards = false;
  std::vector<double> given;
  bool backward = false;
  size_t profile_row = 0;  // its place in what SetProfile was given
};

using SlotsByName = std::map<std::string, size_t, std::less<>>;

class FlatExecutor final : public Executor {
 public:
  FlatExecutor(Plan plan, std::shared_ptr<device::Buffer> arena);

  // Makes the arena large enough, and the steps refer to where it is now. kResourceExhausted where
  // there is no memory for it.
  absl::Status TakeArena();

  absl::Status Bind(std::string_view name, const Tensor& tensor) override;
  absl::Status BindOutput(std::string_view name, Tensor& tensor) override;
  absl::Status BindBlock(std::span<std::byte> memory) override;
  absl::Status OnComplete(std::string_view name, std::function<void()> call) override;
  absl::Status Run(const RunContext& context) override;
  absl::Status Start(const RunContext& context) override;
  std::optional<ShardSum> Advance() override;
  absl::StatusOr<std::optional<NonFinite>> FindNonFinite(const RunContext& context) override;
  absl::StatusOr<Tensor> Output(std::string_view name) override;
  void SetProfile(Profile* profile) override;
  size_t arena_bytes() const override { return arena_bytes_; }
  size_t arena_bytes_without_reuse() const override { return bytes_without_reuse_; }
  std::vector<std::string> ImplementationNames() const override;

 private:
  void AddSlots(const Graph& graph);
  void AddSteps(Plan& plan);
  void Connect(const Plan& plan, ValueId value, const void** reader, void** writer);
  void ConnectTo(const Place& place, const void** reader, void** writer);
  absl::Status BindSlot(const SlotsByName& slots, std::string_view what, std::string_view name,
                        const ValueSpec& spec, void* data);
  // What is done before the first run and after each binding: memory for outputs that have none.
  absl::Status MakeReady();
  // What every run begins with.
  absl::Status Begin(const RunContext& context);
  void Own(Slot& slot);
  void OwnBlock();
  void PointBlock(void* memory);
  void RunStep(const Step& step, const RunContext& context) const;
  void RunProfiled(const RunContext& context);
  void RunProfiled(size_t step, const RunContext& context);
  void TakeGiven(Step& step);
  // Ends a run that Start began.
  void GiveUp() {
    ran_ = steps_.size();
    waits_ = nullptr;
  }

  const std::shared_ptr<device::Buffer> arena_;
  const size_t arena_bytes_;
  void* arena_memory_ = nullptr;         // where the steps look for it
  std::map<size_t, Pointers> in_arena_;  // by offset
  size_t bytes_without_reuse_;
  int64_t samples_;  // how many sample positions a run needs; 0 when nothing is drawn
  std::vector<Slot> slots_;
  SlotsByName sources_, outputs_;       // indices into slots_
  std::map<int32_t, size_t> by_value_;  // root value -> slot
  const OutputBlock block_;
  std::map<size_t, Pointers> in_block_;  // by offset: what lies there beside outputs
  void* block_memory_ = nullptr;
  std::vector<Step> steps_;
  std::vector<Tensor> owned_outputs_;
  device::Buffer owned_block_;
  bool ready_ = false;
  Profile* profile_ = nullptr;
  // Of the run that Start began: its context, how many of its steps have run, and which one waits
  // for what Advance's caller adds up, or null.
  RunContext context_;
  size_t ran_ = 0;
  Step* waits_ = nullptr;
  bool sums_given_ = false;  // whether the last run was one of those
};

FlatExecutor::FlatExecutor(Plan plan, std::shared_ptr<device::Buffer> arena)
    : arena_(std::move(arena)),
      arena_bytes_(plan.arena.bytes),
      bytes_without_reuse_(plan.bytes_without_reuse),
      samples_(plan.samples),
      block_(plan.block) {
  AddSlots(plan.graph);
  AddSteps(plan);
  GiveUp();
}

void FlatExecutor::AddSlots(const Graph& graph) {
  const auto add = [&](SlotsByName& names, const std::string& name, ValueId id) {
    names.emplace(name, slots_.size());
    by_value_.emplace(id.index, slots_.size());
    slots_.push_back({.name = name, .spec = graph.spec(id)});
  };
  for (const ValueKind kind : {ValueKind::kInput, ValueKind::kParameter, ValueKind::kState}) {
    for (const ValueId id : graph.OfKind(kind)) add(sources_, graph.value(id).name, id);
  }
  for (const NamedValue& output : graph.outputs()) add(outputs_, output.name, output.value);
}

void FlatExecutor::AddSteps(Plan& plan) {
  steps_.reserve(plan.steps.size());  // addresses into a step's lists are taken below
  bool backward = false;
  for (PlannedStep& planned : plan.steps) {
    const Node& node = plan.graph.node(planned.node);
    Step& step = steps_.emplace_back();
    step.name = node.name;
    step.op = node.op->type;
    step.primitive = std::move(planned.primitive);
    step.inputs.resize(node.inputs.size());
    step.outputs.resize(node.outputs.size());
    step.output_specs = plan.graph.specs(node.outputs);
    backward = backward || node.name.starts_with(kGradientPrefix);
    step.backward = backward;
    step.over_shards = node.op->over_shards;
    if (step.over_shards)
      step.given.resize(static_cast<size_t>(step.output_specs[0].shape.elements()));
    ConnectTo(planned.scratch, nullptr, &step.scratch);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      Connect(plan, node.inputs[i], &step.inputs[i], nullptr);
    for (size_t i = 0; i < node.outputs.size(); ++i)
      Connect(plan, node.outputs[i], nullptr, &step.outputs[i]);
  }
}

void FlatExecutor::Connect(const Plan& plan, ValueId value, const void** reader, void** writer) {
  const int32_t root = plan.roots[static_cast<size_t>(value.index)];
  if (const auto slot = by_value_.find(root); slot != by_value_.end()) {
    Slot& s = slots_[slot->second];
    s.needed = true;
    s.pointers.Add(reader, writer);
    if (writer != nullptr) s.last_writer = steps_.size();
    return;
  }
  ConnectTo(plan.places[static_cast<size_t>(root)], reader, writer);
}

void FlatExecutor::ConnectTo(const Place& place, const void** reader, void** writer) {
  (place.in_block ? in_block_ : in_arena_)[place.offset].Add(reader, writer);
}

absl::Status FlatExecutor::TakeArena() {
  if (arena_->bytes() < arena_bytes_) {
    *arena_ = {};  // the smaller one does not lie beside it
    try {
      *arena_ = device::Buffer(arena_bytes_);
      device::TakePages(*arena_);
    } catch (const std::bad_alloc&) {
      return NoMemoryFor(arena_bytes_);
    }
  }
  if (arena_->data() == arena_memory_) return absl::OkStatus();
  arena_memory_ = arena_->data();
  for (const auto& [offset, pointers] : in_arena_)
    pointers.Point(static_cast<char*>(arena_memory_) + offset);
  return absl::OkStatus();
}

absl::Status FlatExecutor::BindSlot(const SlotsByName& slots, std::string_view what,
                                    std::string_view name, const ValueSpec& spec, void* data) {
  const auto found = slots.find(name);
  if (found == slots.end()) {
    return absl::NotFoundError(fmt::format("the graph has no {} named \"{}\"", what, name));
  }
  Slot& slot = slots_[found->second];
  if (data == nullptr || !(spec == slot.spec)) {
    return absl::InvalidArgumentError(
        fmt::format("{} \"{}\" is {}, cannot bind {}", what, name, slot.spec.ToString(),
                    data == nullptr ? "an empty tensor" : spec.ToString()));
  }
  slot.Point(data);
  return absl::OkStatus();
}

absl::Status FlatExecutor::Bind(std::string_view name, const Tensor& tensor) {
  // Steps only read what is bound here: a slot of a source has no writer.
  return BindSlot(sources_, "input, parameter or state", name, tensor.spec(),
                  const_cast<void*>(tensor.raw()));
}

absl::Status FlatExecutor::BindOutput(std::string_view name, Tensor& tensor) {
  if (block_.offsets.contains(name)) {
    return absl::InvalidArgumentError(
        fmt::format("output \"{}\" lies in the block of outputs, which is bound as a whole", name));
  }
  return BindSlot(outputs_, "output", name, tensor.spec(), tensor.raw());
}

absl::Status FlatExecutor::BindBlock(std::span<std::byte> memory) {
  if (memory.size() != block_.bytes) {
    return absl::InvalidArgumentError(fmt::format(
        "the block of outputs has {} bytes, cannot bind {}", block_.bytes, memory.size()));
  }
  PointBlock(memory.data());
  return absl::OkStatus();
}

void FlatExecutor::PointBlock(void* memory) {
  block_memory_ = memory;
  char* const begin = static_cast<char*>(memory);
  for (const auto& [offset, pointers] : in_block_) pointers.Point(begin + offset);
  for (const auto& [name, offset] : block_.offsets)
    slots_[outputs_.find(name)->second].Point(begin + offset);
}

absl::Status FlatExecutor::OnComplete(std::string_view name, std::function<void()> call) {
  const auto found = outputs_.find(name);
  if (found == outputs_.end()) {
    return absl::NotFoundError(fmt::format("the graph has no output named \"{}\"", name));
  }
  const size_t writer = slots_[found->second].last_writer;
  if (writer > 0) steps_[writer - 1].then.push_back(std::move(call));
  return absl::OkStatus();
}

void FlatExecutor::OwnBlock() {
  owned_block_ = device::Buffer(block_.bytes);
  PointBlock(owned_block_.data());
}

void FlatExecutor::Own(Slot& slot) {
  if (block_.offsets.contains(slot.name)) return OwnBlock();
  owned_outputs_.emplace_back(slot.spec.shape, slot.spec.dtype);
  slot.Point(owned_outputs_.back().raw());
}

absl::Status FlatExecutor::MakeReady() {
  for (const auto& [name, index] : sources_) {
    const Slot& slot = slots_[index];
    if (slot.needed && slot.pointer == nullptr) {
      return absl::FailedPreconditionError(
          fmt::format("\"{}\" ({}) is not bound", name, slot.spec.ToString()));
    }
  }
  if (block_.bytes > 0 && block_memory_ == nullptr) OwnBlock();
  for (const auto& [name, index] : outputs_) {
    if (slots_[index].pointer == nullptr) Own(slots_[index]);
  }
  ready_ = true;  // bindings are replaced, never taken away
  return absl::OkStatus();
}

absl::Status FlatExecutor::Begin(const RunContext& context) {
  RM_RETURN_IF_ERROR(TakeArena());
  if (!ready_) RM_RETURN_IF_ERROR(MakeReady());
  if (samples_ != 0 && static_cast<int64_t>(context.sample_positions.size()) != samples_) {
    return absl::InvalidArgumentError(
        fmt::format("the graph draws random numbers for {}, the run context has {}",
                    WithNoun(samples_, "sample"),
                    WithNoun(static_cast<int64_t>(context.sample_positions.size()), "position")));
  }
  device::AdoptThreadCount();
  return absl::OkStatus();
}

absl::Status FlatExecutor::Run(const RunContext& context) {
  RM_RETURN_IF_ERROR(Begin(context));
  sums_given_ = false;
  GiveUp();
  if (profile_ != nullptr) {
    RunProfiled(context);
    return absl::OkStatus();
  }
  for (const Step& step : steps_) {
    RunStep(step, context);
    for (const std::function<void()>& call : step.then) call();
  }
  return absl::OkStatus();
}

absl::Status FlatExecutor::Start(const RunContext& context) {
  RM_RETURN_IF_ERROR(Begin(context));
  context_ = context;
  sums_given_ = true;
  ran_ = 0;
  waits_ = nullptr;
  if (profile_ != nullptr) ++profile_->runs;
  return absl::OkStatus();
}

std::optional<ShardSum> FlatExecutor::Advance() {
  if (Step* const waited = std::exchange(waits_, nullptr)) TakeGiven(*waited);
  while (ran_ < steps_.size()) {
    Step& step = steps_[ran_++];
    if (step.over_shards) {
      waits_ = &step;
      const size_t count = step.given.size();
      return ShardSum{.name = step.name,
                      .own = {static_cast<const double*>(step.inputs[0]), count},
                      .total = {static_cast<double*>(step.outputs[0]), count}};
    }
    if (profile_ != nullptr) {
      RunProfiled(ran_ - 1, context_);
      continue;
    }
    RunStep(step, context_);
    for (const std::function<void()>& call : step.then) call();
  }
  return std::nullopt;
}

// The step has its result now.
void FlatExecutor::TakeGiven(Step& step) {
  std::memcpy(step.given.data(), step.outputs[0], step.output_specs[0].bytes());
  for (const std::function<void()>& call : step.then) call();
}

absl::StatusOr<std::optional<NonFinite>> FlatExecutor::FindNonFinite(const RunContext& context) {
  RM_RETURN_IF_ERROR(Begin(context));
  GiveUp();
  for (const auto& [name, index] : sources_) {
    const Slot& slot = slots_[index];
    if (slot.needed && !IsFinite(slot.pointer, slot.spec))
      return NonFinite{.name = name, .op = "", .spec = slot.spec};
  }
  for (const Step& step : steps_) {
    if (step.over_shards && sums_given_) {
      std::memcpy(step.outputs[0], step.given.data(), step.output_specs[0].bytes());
      if (!IsFinite(step.outputs[0], step.output_specs[0])) return std::nullopt;
      continue;
    }
    RunStep(step, context);
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (!IsFinite(step.outputs[i], step.output_specs[i]))
        return NonFinite{.name = step.name, .op = step.op, .spec = step.output_specs[i]};
    }
  }
  return std::nullopt;
}

void FlatExecutor::RunStep(const Step& step, const RunContext& context) const {
  step.primitive->Run({step.inputs.data(), step.outputs.data(), step.scratch, &context});
}

void FlatExecutor::SetProfile(Profile* profile) {
  profile_ = profile;
  if (profile == nullptr) return;
  std::vector<OpProfile>& ops = profile->ops;
  const size_t others = ops.size();
  for (Step& step : steps_) {
    OpProfile op{.node = step.name,
                 .op = std::string(step.op),
                 .implementation = step.primitive->name(),
                 .backward = step.backward};
    const auto same = std::find_if(ops.begin(), ops.begin() + static_cast<ptrdiff_t>(others),
                                   [&](const OpProfile& other) {
                                     return other.node == op.node && other.op == op.op &&
                                            other.implementation == op.implementation;
                                   });
    step.profile_row = static_cast<size_t>(same - ops.begin());
    if (step.profile_row == others) {
      step.profile_row = ops.size();
      ops.push_back(std::move(op));
    }
  }
}

void FlatExecutor::RunProfiled(const RunContext& context) {
  ++profile_->runs;
  for (size_t i = 0; i < steps_.size(); ++i) RunProfiled(i, context);
}

void FlatExecutor::RunProfiled(size_t step, const RunContext& context) {
  const auto begin = std::chrono::steady_clock::now();
  RunStep(steps_[step], context);
  const auto end = std::chrono::steady_clock::now();
  OpProfile& op = profile_->ops[steps_[step].profile_row];
  ++op.calls;
  op.time += end - begin;
  if (profile_->listener) profile_->listener(op, begin, end);
  for (const std::function<void()>& call : steps_[step].then) call();
}

absl::StatusOr<Tensor> FlatExecutor::Output(std::string_view name) {
  const auto found = outputs_.find(name);
  if (found == outputs_.end()) {
    return absl::NotFoundError(fmt::format("the graph has no output named \"{}\"", name));
  }
  Slot& slot = slots_[found->second];
  if (slot.pointer == nullptr) Own(slot);
  return Tensor::View(slot.pointer, slot.spec.shape, slot.spec.dtype);
}

std::vector<std::string> FlatExecutor::ImplementationNames() const {
  std::vector<std::string> names;
  for (const Step& step : steps_)
    names.push_back(fmt::format("{}: {}", step.name, step.primitive->name()));
  return names;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> Executor::Compile(const Graph& graph,
                                                            const CompileOptions& options) {
  RM_ASSIGN_OR_RETURN(Plan plan, MakePlan(graph, options));
  const size_t bytes = plan.arena.bytes;
  auto arena = options.arena != nullptr ? options.arena : std::make_shared<device::Buffer>();
  try {
    auto executor = std::make_unique<FlatExecutor>(std::move(plan), std::move(arena));
    RM_RETURN_IF_ERROR(executor->TakeArena());
    return executor;
  } catch (const std::bad_alloc&) {
    return NoMemoryFor(bytes);
  }
}

}  // namespace ringmaster::graph
