// oneDNN's primitives run on the one team of threads that our kernels have.
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/threads.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/convolution_nodes.h"

namespace ringmaster::kernels {
namespace {

using tensor::DType;
using tensor::ValueSpec;

std::set<std::string> Threads() {
  std::set<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    names.insert(task.path().filename());
  return names;
}

void RunOurs() {
  const ValueSpec row{{int64_t{1} << 20}, DType::kF32};
  const auto relu = Prepare({"relu", {}, {&row, 1}, {&row, 1}}, Selection::kFastest);
  ASSERT_EQ(relu->name(), "vector/avx2");
  const std::vector<float> x(size_t{1} << 20, 1);
  std::vector<float> y(x.size());
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data()};
  relu->Run({inputs, outputs, nullptr, nullptr});
}

void RunOneDnn() {
  const vector::Convolution c{8, 16, 32, 28, 28, 3, 1};
  const ValueSpec specs[] = {{c.x(), DType::kF32}, {c.weight(), DType::kF32}};
  const ValueSpec out{c.y(), DType::kF32};
  const auto convolution =
      Prepare({"conv2d", c.attributes(true), specs, {&out, 1}}, Selection::kOneDnn);
  ASSERT_TRUE(convolution->name().starts_with("onednn/")) << convolution->name();
  const std::vector<float> x(static_cast<size_t>(c.x().elements()), 1);
  const std::vector<float> weight(static_cast<size_t>(c.weight().elements()), 1);
  std::vector<float> y(static_cast<size_t>(c.y().elements()));
  std::vector<float> scratch(convolution->scratch_bytes() / sizeof(float));
  const void* inputs[] = {x.data(), weight.data()};
  void* outputs[] = {y.data()};
  convolution->Run({inputs, outputs, scratch.data(), nullptr});
}

TEST(OneDnnTeamTest, ItsPrimitivesStartNoThreadsBesideThoseOfOurKernels) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "our own kernels want AVX2";
  ASSERT_EQ(device::ThreadCount(), 2);
  RunOurs();
  const std::set<std::string> ours = Threads();
  EXPECT_GE(ours.size(), 2u);
  RunOneDnn();
  EXPECT_EQ(Threads(), ours);
}

}  // namespace
}  // namespace ringmaster::kernels
