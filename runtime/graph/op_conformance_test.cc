// Runs every case of conformance_cases.h through every check of its kernels.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <set>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/graph/conformance_cases.h"
#include "runtime/graph/op_definition.h"
#include "runtime/graph/testing/compiled_case.h"
#include "runtime/kernels/vector/split_product.h"

namespace ringmaster::graph {

// Makes a failure name its case.
void PrintTo(const Case& c, std::ostream* os) {
  *os << c.name;
}
namespace {

using kernels::Selection;
using tensor::Tensor;

class OpConformanceTest : public ::testing::TestWithParam<Case> {};

double SumOfMagnitudes(CompiledCase& c) {
  const Tensor y = c.Output("y");
  double sum = 0;
  for (int64_t i = 0; i < y.elements(); ++i) sum += std::abs(CompiledCase::At(y, i));
  return sum;
}

void ExpectNear(const Case& c, CompiledCase& expected, CompiledCase& got) {
  expected.Run();
  got.Run();
  for (const std::string& name : expected.OutputNames()) {
    const Tensor e = expected.Output(name), g = got.Output(name);
    double largest = 1.0;
    for (int64_t i = 0; i < e.elements(); ++i)
      largest = std::max(largest, std::abs(CompiledCase::At(e, i)));
    // A sum of so many terms of either sign that little is left of them: it is as exact as these.
    if (name == "loss" && c.is_large) largest = std::max(largest, SumOfMagnitudes(expected));
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
    ExpectNear(GetParam(), reference, c);
  }
}

TEST_P(OpConformanceTest, EveryLayoutAgreesWithTheReferenceInDouble) {
  CompiledCase reference(GetParam(), DType::kF64, {.kernels = Selection::kReference});
  for (const tensor::Layout images :
       {tensor::Layout::kRowMajor, tensor::Layout::kBlocks8, tensor::Layout::kBlocks16}) {
    CompiledCase c(GetParam(), DType::kF32, {.images = images});
    ExpectNear(GetParam(), reference, c);
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

TEST_P(OpConformanceTest, PassesChangeNoBit) {
  for (const Selection selection :
       {Selection::kReference, Selection::kOneDnn, Selection::kFastest}) {
    CompiledCase with(GetParam(), DType::kF32, {.kernels = selection});
    CompiledCase without(GetParam(), DType::kF32, {.kernels = selection, .optimise = false});
    with.Run();
    without.Run();
    ExpectSameBits(with, without);
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
      for (const OpProfile& op : profile.ops) {
        ops.insert(op.op);
        reached.insert(op.op + ": " + FamilyOf(op.implementation));
      }
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

TEST(OpCoverageTest, TheMatrixUnitsKernelOfEachOpIsReachedByACase) {
  if (!kernels::vector::SplitProduct::Runs()) GTEST_SKIP() << "this processor has no matrix unit";
  std::set<std::string> reached;
  for (const Case& c : ConformanceCases()) {
    if (!c.is_large) continue;
    CompiledCase compiled(c, DType::kF32, {});
    graph::Profile profile;
    compiled.executor().SetProfile(&profile);
    for (const OpProfile& op : profile.ops) {
      if (op.implementation.starts_with("vector/amx")) reached.insert(op.op);
    }
  }
  EXPECT_THAT(reached, ::testing::ElementsAre("conv2d", "conv2d_batch_norm", "conv2d_grad_input",
                                              "conv2d_grad_weight", "linear", "linear_activation",
                                              "matmul"));
}

// These have the reference kernel alone: they copy or fill memory, at its speed, or compute a few
// numbers a channel.
TEST(OpCoverageTest, EveryOpHasAFastKernelButThoseThatMoveMemoryOrComputeLittle) {
  std::set<std::string_view> without = {
      "batch_statistics", "concat",  "constant", "copy",  "embedding",
      "nll_grad",         "one_hot", "pad",      "slice", "sum_over_shards"};
  for (const OpDefinition* op : AllOps()) {
    if (op->alias) continue;
    EXPECT_EQ(kernels::ImplementationsOf(op->type).size() == 1, without.erase(op->type) == 1)
        << op->type;
  }
  EXPECT_TRUE(without.empty()) << "there is no op " << *without.begin();
}

}  // namespace
}  // namespace ringmaster::graph
