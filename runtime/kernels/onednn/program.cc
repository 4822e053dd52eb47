#include "runtime/kernels/onednn/program.h"

#include <algorithm>

#include "common/check.h"
#include "runtime/device/memory.h"
#include "runtime/device/parallel.h"
#include "runtime/device/vectors.h"
#include "runtime/kernels/onednn/call_memory.h"

namespace ringmaster::kernels::onednn {
namespace {

dnnl::memory::dims Dims(const tensor::Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

void KeepPositiveOf(float* values, int64_t count) {
  constexpr int64_t kChunk = 8192;  // elements of one parallel task
  device::ParallelFor((count + kChunk - 1) / kChunk, kChunk / 4, [&](int64_t chunk) {
    const int64_t end = std::min(count, (chunk + 1) * kChunk);
#pragma omp simd
    for (int64_t i = chunk * kChunk; i < end; ++i) {
      values[i] = values[i] <= 0.0F ? 0.0F : values[i];
    }
  });
}

}  // namespace

const dnnl::engine& CpuEngine() {
  static const dnnl::engine engine = [] {
    // Before anything is prepared; afterwards the library takes no such word, as where a program
    // has used it by itself before.
    if (!device::MayUse(device::Vectors::kAvx512)) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::memory::desc Plain(const tensor::Shape& shape) {
  dnnl::memory::dims strides(static_cast<size_t>(shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis) {
    strides[static_cast<size_t>(axis)] = shape.Product(axis + 1, shape.rank());
  }
  return {Dims(shape), dnnl::memory::data_type::f32, strides};
}

dnnl::memory::desc Stored(const tensor::ValueSpec& spec) {
  using Tag = dnnl::memory::format_tag;
  if (spec.layout == tensor::Layout::kRowMajor) return Plain(spec.shape);
  const Tag tag = spec.layout == tensor::Layout::kBlocks8 ? Tag::nChw8c : Tag::nChw16c;
  return {Dims(spec.shape), dnnl::memory::data_type::f32, tag};
}

dnnl::memory::desc Any(const tensor::Shape& shape) {
  return {Dims(shape), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

bool AllF32(const NodeSpec& node) {
  const auto is_f32 = [](const tensor::ValueSpec& spec) {
    return spec.dtype == tensor::DType::kF32;
  };
  return std::ranges::all_of(node.inputs, is_f32) && std::ranges::all_of(node.outputs, is_f32);
}

int Program::AddBuffer(Place place, size_t index, const dnnl::memory::desc& desc) {
  buffers_.push_back({place, index, dnnl::memory(desc, CpuEngine(), DNNL_MEMORY_NONE)});
  return static_cast<int>(buffers_.size()) - 1;
}

int Program::Input(int i, const dnnl::memory::desc& desc) {
  return AddBuffer(Place::kInput, static_cast<size_t>(i), desc);
}

int Program::Output(int i, const dnnl::memory::desc& desc) {
  return AddBuffer(Place::kOutput, static_cast<size_t>(i), desc);
}

int Program::Scratch(const dnnl::memory::desc& desc) {
  const size_t offset = scratch_bytes_;
  scratch_bytes_ += device::AlignUp(desc.get_size());
  return AddBuffer(Place::kScratch, offset, desc);
}

int Program::Reordered(int buffer, const dnnl::memory::desc& wanted) {
  if (DescOf(buffer) == wanted) return buffer;
  const int copy = Scratch(wanted);
  Reorder(buffer, copy);
  return copy;
}

int Program::ReorderedImage(int buffer, const dnnl::memory::desc& wanted) {
  const int image = Reordered(buffer, wanted);
  if (image != buffer) reordered_bytes_ += wanted.get_size();
  return image;
}

void Program::FinishImage(int from, int to) {
  if (from == to) return;
  Reorder(from, to);
  reordered_bytes_ += DescOf(to).get_size();
}

void Program::Reorder(int from, int to) {
  if (const auto reorder = WeightReorder::Between(DescOf(from), DescOf(to))) {
    stages_.push_back(
        {.reorder = reorder, .from = static_cast<size_t>(from), .to = static_cast<size_t>(to)});
    return;
  }
  const dnnl::reorder::primitive_desc pd(CpuEngine(), DescOf(from), CpuEngine(), DescOf(to),
                                         UserScratchpad());
  AddStage(dnnl::reorder(pd), pd.scratchpad_desc(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

void Program::KeepPositive(int buffer) {
  stages_.push_back({.keeps_positive = true, .to = static_cast<size_t>(buffer)});
}

void Program::KeepComputationsOnly() {
  std::erase_if(stages_, [](const Stage& stage) { return !stage.computes; });
}

void Program::AddStage(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
                       ArgumentList arguments) {
  Stage& stage = stages_.emplace_back(Stage{std::move(primitive), {}});
  const auto add = [&](int what, int buffer) {
    stage.arguments.push_back({what, buffers_[static_cast<size_t>(buffer)].memory.get()});
  };
  for (const auto& [what, buffer] : arguments) add(what, buffer);
  if (scratchpad.get_size() > 0) add(DNNL_ARG_SCRATCHPAD, Scratch(scratchpad));
}

std::string Program::name() const {
  return name_.empty() ? "onednn/reorder" : name_;
}

void Program::Run(const Arguments& arguments) {
  for (Buffer& buffer : buffers_) {
    void* pointer = nullptr;
    switch (buffer.place) {
      case Place::kInput:
        pointer = const_cast<void*>(arguments.inputs[buffer.index]);  // oneDNN only reads it
        break;
      case Place::kOutput:
        pointer = arguments.outputs[buffer.index];
        break;
      case Place::kScratch:
        pointer = static_cast<char*>(arguments.scratch) + buffer.index;
        break;
    }
    if (pointer == buffer.pointer) continue;
    buffer.memory.set_data_handle(pointer);
    buffer.pointer = pointer;
  }
  // A first call also makes what oneDNN keeps for ever, its own code among it.
  std::optional<CallMemory> memory;
  if (has_run_) memory.emplace();
  has_run_ = true;
  // The C call: the C++ wrapper would copy the arguments into a fresh map for each run.
  for (const Stage& stage : stages_) {
    if (stage.reorder) {
      stage.reorder->Run(static_cast<const float*>(buffers_[stage.from].pointer),
                         static_cast<float*>(buffers_[stage.to].pointer));
      continue;
    }
    if (stage.keeps_positive) {
      const Buffer& buffer = buffers_[stage.to];
      KeepPositiveOf(static_cast<float*>(buffer.pointer),
                     static_cast<int64_t>(buffer.memory.get_desc().get_size() / sizeof(float)));
      continue;
    }
    const dnnl_status_t status =
        dnnl_primitive_execute(stage.primitive.get(), stream_.get(),
                               static_cast<int>(stage.arguments.size()), stage.arguments.data());
    RM_CHECK(status == dnnl_success, "oneDNN refuses to run what it has prepared");
  }
}

}  // namespace ringmaster::kernels::onednn
