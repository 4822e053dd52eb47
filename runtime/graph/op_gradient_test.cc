// The gradients of every case of conformance_cases.h against finite differences in double.
#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "runtime/graph/conformance_cases.h"
#include "runtime/graph/testing/compiled_case.h"

namespace ringmaster::graph {

// Makes a failure name its case.
void PrintTo(const Case& c, std::ostream* os) {
  *os << c.name;
}
namespace {

using kernels::Selection;
using tensor::Tensor;

class OpGradientTest : public ::testing::TestWithParam<Case> {};

// Of about so many elements of the tensor, evenly spread.
void CheckGradient(CompiledCase& c, CaseBuilder::Source& source, int64_t elements) {
  constexpr double kStep = 1e-5, kTolerance = 2e-7;
  const std::string name = c.GradientName(source.id);
  c.Run();
  const Tensor gradient = c.Output(name).Clone();
  const int64_t n = gradient.elements(), stride = std::max<int64_t>(1, n / elements);
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

TEST_P(OpGradientTest, AgreesWithFiniteDifferences) {
  // So many small runs would wait for their second thread most of the time.
  CompiledCase c(GetParam(), DType::kF64, {.kernels = Selection::kReference}, /*threads=*/1);
  for (auto& source : c.sources()) {
    if (source.differentiate) CheckGradient(c, source, GetParam().is_large ? 3 : 48);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, OpGradientTest, ::testing::ValuesIn(ConformanceCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ringmaster::graph
