#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "runtime/graph/conformance_cases.h"
#include "runtime/tensor/random.h"

namespace ringmaster::graph {
namespace {

constexpr uint64_t kSeed = 20240229;

// In [-1, 1) without (-0.05, 0.05).
double AwayFromZero(tensor::RandomStream& stream) {
  const double v = 2.0 * static_cast<double>(tensor::ToUniform(stream.Next())) - 1.0;
  return std::copysign(0.05 + 0.95 * std::abs(v), v);
}

}  // namespace

template <typename Draw>
ValueId CaseBuilder::Add(const Shape& shape, bool differentiate, const Draw& draw) {
  const std::string name = fmt::format("v{}", sources_.size());
  tensor::RandomStream stream({.seed = kSeed, .op = tensor::StreamOf(name)});
  tensor::Tensor t(shape, dtype_);
  for (int64_t i = 0; i < t.elements(); ++i) {
    const double v = draw(stream, i);
    if (dtype_ == DType::kF64) {
      t.data<double>()[i] = v;
    } else {
      t.data<float>()[i] = static_cast<float>(v);
    }
  }
  const ValueId id =
      differentiate ? graph_.Parameter(name, shape, dtype_) : graph_.Input(name, shape, dtype_);
  sources_.push_back({id, std::move(t), differentiate});
  return id;
}

ValueId CaseBuilder::Var(const Shape& shape) {
  return Add(shape, true, [](tensor::RandomStream& s, int64_t) { return AwayFromZero(s); });
}

ValueId CaseBuilder::Fixed(const Shape& shape) {
  return Add(shape, false, [](tensor::RandomStream& s, int64_t) { return AwayFromZero(s); });
}

ValueId CaseBuilder::Positive(const Shape& shape) {
  return Add(shape, false,
             [](tensor::RandomStream& s, int64_t) { return std::abs(AwayFromZero(s)); });
}

ValueId CaseBuilder::Distinct(const Shape& shape) {
  const auto order =
      tensor::Permutation(static_cast<uint32_t>(shape.elements()), kSeed, sources_.size());
  return Add(shape, true, [&](tensor::RandomStream&, int64_t i) {
    return 0.1 * static_cast<double>(order[static_cast<size_t>(i)]) - 1.0;
  });
}

ValueId CaseBuilder::Indices(const Shape& shape, int32_t bound) {
  const std::string name = fmt::format("v{}", sources_.size());
  tensor::RandomStream stream({.seed = kSeed, .op = tensor::StreamOf(name)});
  tensor::Tensor t(shape, DType::kI32);
  for (int32_t& v : t.span<int32_t>())
    v = static_cast<int32_t>(stream.Below(static_cast<uint32_t>(bound)));
  const ValueId id = graph_.Input(name, shape, DType::kI32);
  sources_.push_back({id, std::move(t), false});
  return id;
}

}  // namespace ringmaster::graph
