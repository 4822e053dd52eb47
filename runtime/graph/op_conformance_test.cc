// Runs every case of conformance_cases.h through every check.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <ostream>
#include <set>

#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/device/threads.h"
#include "runtime/graph/autodiff.h"
#include "runtime/graph/conformance_cases.h"
#include "runtime/graph/executor.h"
#include "runtime/graph/op_definition.h"

namespace ringmaster::graph {

// Makes a failure name its case.
void PrintTo(const Case& c, std::ostream* os) {
  *os << c.name;
}
namespace {

using kernels::Selection;
using tensor::Tensor;

constexpr int kThreads = 2;
constexpr uint64_t kSeed = 99;

// A case compiled: its result, a scalar that weighs every element of the result differently (so
// that no gradient vanishes by symmetry), and that scalar's gradients.
class CompiledCase {
 public:
  CompiledCase(const Case& c, DType dtype, const CompileOptions& options) : builder_(dtype) {
    EXPECT_TRUE(device::SetThreadCount(kThreads).ok());
    Graph& g = builder_.graph();
    const ValueId y = c.build(builder_);
    EXPECT_TRUE(g.status().ok()) << g.status();
    const int64_t n = g.shape(y).elements();
    const ValueId weights = builder_.Fixed({1, n});
    const ValueId loss = Reshape(g, Linear(g, Reshape(g, y, {1, n}), weights, ValueId{}), {});
    std::vector<ValueId> wrt;
    for (const auto& source : builder_.sources()) {
      if (source.differentiate) wrt.push_back(source.id);
    }
    const auto gradients = Differentiate(g, loss, wrt);
    EXPECT_TRUE(gradients.ok()) << gradients.status();
    g.MarkOutput("y", y);
    g.MarkOutput("loss", loss);
    for (size_t i = 0; i < wrt.size(); ++i) g.MarkOutput(GradientName(wrt[i]), (*gradients)[i]);
    auto executor = Executor::Compile(g, options);
    EXPECT_TRUE(executor.ok()) << executor.status();
    executor_ = std::move(*executor);
    for (auto& source : builder_.sources()) {
      EXPECT_TRUE(executor_->Bind(g.value(source.id).name, source.tensor).ok());
    }
    positions_.resize(kCaseSamples);
    std::iota(positions_.begin(), positions_.end(), uint64_t{1000});
  }

  void Run() {
    const absl::Status status = executor_->Run({.seed = kSeed, .sample_positions = positions_});
    ASSERT_TRUE(status.ok()) << status;
  }

  double Loss() {
    Run();
    return At(*executor_->Output("loss"), 0);
  }

  std::string GradientName(ValueId id) const { return "grad." + graph().value(id).name; }
  std::vector<std::string> OutputNames() const {
    std::vector<std::string> names;
    for (const NamedValue& output : graph().outputs()) names.push_back(output.name);
    return names;
  }
  Tensor Output(const std::string& name) { return *executor_->Output(name); }
  const Graph& graph() const { return const_cast<CompiledCase*>(this)->builder_.graph(); }
  std::vector<CaseBuilder::Source>& sources() { return builder_.sources(); }
  Executor& executor() { return *executor_; }

  static double At(const Tensor& t, int64_t i) {
    return t.dtype() == DType::kF64 ? t.data<double>()[i] : static_cast<double>(t.data<float>()[i]);
  }

 private:
  CaseBuilder builder_;
  std::unique_ptr<Executor> executor_;
  std::vector<uint64_t> positions_;
};

class OpConformanceTest : public ::testing::TestWithParam<Case> {};

void CheckGradient(CompiledCase& c, CaseBuilder::Source& source) {
  constexpr double kStep = 1e-5, kTolerance = 2e-7;
  constexpr int64_t kMostElements = 48;  // of each tensor, evenly spread
  const std::string name = c.GradientName(source.id);
  c.Run();
  const Tensor gradient = c.Output(name).Clone();
  const int64_t n = gradient.elements(), stride = std::max<int64_t>(1, n / kMostElements);
  for (int64_t i = 0; i < n; i += stride) {
    double& v = source.tensor.data<double>()[i];
    const double before = v;
    v = before + kStep;
    const double above = c.Loss();
    v = before - kStep;
    const double below = c.Loss();
    v = before;
    const double expected = (above - below) / (2 * kStep), got = CompiledCase::At(gradient, i);
    ASSERT_NEAR(got, expected, kTolerance * (1 + std::abs(expected))) << name << "[" << i << "]";
  }
}

TEST_P(OpConformanceTest, GradientsAgreeWithFiniteDifferences) {
  CompiledCase c(GetParam(), DType::kF64, {.kernels = Selection::kReference});
  for (auto& source : c.sources()) {
    if (source.differentiate) CheckGradient(c, source);
  }
}

void ExpectNear(CompiledCase& expected, CompiledCase& got) {
  expected.Run();
  got.Run();
  for (const std::string& name : expected.OutputNames()) {
    const Tensor e = expected.Output(name), g = got.Output(name);
    double largest = 1.0;
    for (int64_t i = 0; i < e.elements(); ++i)
      largest = std::max(largest, std::abs(CompiledCase::At(e, i)));
    for (int64_t i = 0; i < e.elements(); ++i) {
      ASSERT_NEAR(CompiledCase::At(g, i), CompiledCase::At(e, i), 2e-5 * largest)
          << name << "[" << i << "]";
    }
  }
}

TEST_P(OpConformanceTest, EveryKernelAgreesWithTheReferenceInDouble) {
  CompiledCase reference(GetParam(), DType::kF64, {.kernels = Selection::kReference});
  for (const Selection selection :
       {Selection::kReference, Selection::kOneDnn, Selection::kFastest}) {
    CompiledCase c(GetParam(), DType::kF32, {.kernels = selection});
    ExpectNear(reference, c);
  }
}

void ExpectSameBits(CompiledCase& a, CompiledCase& b) {
  for (const std::string& name : a.OutputNames()) {
    const Tensor x = a.Output(name), y = b.Output(name);
    ASSERT_EQ(std::memcmp(x.raw(), y.raw(), x.bytes()), 0) << name;
  }
}

TEST_P(OpConformanceTest, EveryRunGivesTheSameBits) {
  CompiledCase once(GetParam(), DType::kF32, {}), often(GetParam(), DType::kF32, {});
  once.Run();
  for (int i = 0; i < 3; ++i) {
    often.Run();
    ExpectSameBits(once, often);
  }
}

TEST_P(OpConformanceTest, SharedMemoryChangesNoBit) {
  CompiledCase shared(GetParam(), DType::kF32, {.reuse_memory = true});
  CompiledCase apart(GetParam(), DType::kF32, {.reuse_memory = false});
  EXPECT_LE(shared.executor().arena_bytes(), apart.executor().arena_bytes());
  for (int i = 0; i < 2; ++i) {
    shared.Run();
    apart.Run();
    ExpectSameBits(shared, apart);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, OpConformanceTest, ::testing::ValuesIn(ConformanceCases()),
                         [](const auto& info) { return info.param.name; });

// "onednn" of "onednn/jit:avx2".
std::string FamilyOf(const std::string& implementation) {
  return implementation.substr(0, implementation.find('/'));
}

TEST(OpCoverageTest, EveryOpAndEveryFastKernelIsReachedByACase) {
  std::set<std::string> ops, reached;  // "linear", "linear: vector"
  for (const Case& c : ConformanceCases()) {
    for (const Selection selection : {Selection::kOneDnn, Selection::kFastest}) {
      CompiledCase compiled(c, DType::kF32, {.kernels = selection});
      graph::Profile profile;
      compiled.executor().SetProfile(&profile);
      for (const OpProfile& op : profile.ops)
        reached.insert(op.op + ": " + FamilyOf(op.implementation));
      for (const Node& node : compiled.graph().nodes()) ops.emplace(node.op->type);
    }
  }
  for (const OpDefinition* op : AllOps()) {
    const std::string type(op->type);
    EXPECT_TRUE(ops.contains(type)) << type << " is in no case";
    if (op->alias) continue;
    const auto list = kernels::ImplementationsOf(op->type);
    ASSERT_FALSE(list.empty()) << type << " has no kernel";
    EXPECT_EQ(list.back().family, kernels::Family::kReference) << type;
    for (const kernels::Implementation& one : list) {
      if (one.family == kernels::Family::kOneDnn) {
        EXPECT_TRUE(reached.contains(type + ": onednn")) << type << ": no case reaches oneDNN's";
      }
      if (one.family == kernels::Family::kVector && __builtin_cpu_supports("avx2")) {
        EXPECT_TRUE(reached.contains(type + ": vector")) << type << ": no case reaches ours";
      }
    }
  }
}

}  // namespace
}  // namespace ringmaster::graph
