// Sums over the axes that broadcasting would have added, of the two kinds that gradients of biases
// are: down the rows of a matrix, and over samples and places of each channel. In double; each
// element by one thread, in the input's order.
#include <algorithm>
#include <array>
#include <vector>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/blocks.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/vector.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// Neighbouring axes that are all kept, or all summed, taken as one.
struct AxisRun {
  bool kept;
  int64_t extent;
};

// x's axes as runs, those of one element left out.
std::vector<AxisRun> RunsOf(const tensor::Shape& x, const tensor::Shape& y) {
  std::vector<AxisRun> runs;
  const int missing = x.rank() - y.rank();
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (x.dim(axis) == 1) continue;
    const bool kept = axis >= missing && y.dim(axis - missing) == x.dim(axis);
    if (!runs.empty() && runs.back().kept == kept) {
      runs.back().extent *= x.dim(axis);
    } else {
      runs.push_back({kept, x.dim(axis)});
    }
  }
  return runs;
}

// [rows, columns] -> [columns]
class SumRowsKernel : public VectorPrimitive {
 public:
  SumRowsKernel(int64_t rows, int64_t columns) : rows_(rows), columns_(columns) {}

  void Run(const Arguments& a) override {
    const int64_t blocks = (columns_ + kBlock - 1) / kBlock;
    device::ParallelFor(blocks, rows_ * kBlock / 4, [&](int64_t block) {
      const int64_t first = block * kBlock;
      SumBlock(a.in<float>(0) + first, std::min(kBlock, columns_ - first), a.out<float>(0) + first);
    });
  }

 private:
  static constexpr int64_t kBlock = 128;  // columns

  void SumBlock(const float* x, int64_t width, float* y) const {
    std::array<double, kBlock> sums{};
    int64_t r = 0;
    for (; r + 4 <= rows_; r += 4) {
      const float *first = x + r * columns_, *second = first + columns_, *third = second + columns_,
                  *fourth = third + columns_;
      for (int64_t j = 0; j < width; ++j) {
        sums[static_cast<size_t>(j)] +=
            (static_cast<double>(first[j]) + static_cast<double>(second[j])) +
            (static_cast<double>(third[j]) + static_cast<double>(fourth[j]));
      }
    }
    for (; r < rows_; ++r) {
      for (int64_t j = 0; j < width; ++j)
        sums[static_cast<size_t>(j)] += static_cast<double>(x[r * columns_ + j]);
    }
    for (int64_t j = 0; j < width; ++j) y[j] = static_cast<float>(sums[static_cast<size_t>(j)]);
  }

  const int64_t rows_, columns_;
};

// [outer, channels, inner] -> [channels]
class SumPlanesKernel : public VectorPrimitive {
 public:
  SumPlanesKernel(int64_t outer, int64_t channels, int64_t inner)
      : outer_(outer), channels_(channels), inner_(inner) {}

  void Run(const Arguments& a) override {
    device::ParallelFor(channels_, outer_ * inner_ / 4, [&](int64_t c) {
      Sum sum;
      for (int64_t n = 0; n < outer_; ++n) {
        const float* x = a.in<float>(0) + (n * channels_ + c) * inner_;
        ForLanes(inner_, [&](auto lanes, int64_t i) { sum.Add(lanes.Load(x + i)); });
      }
      a.out<float>(0)[c] = static_cast<float>(sum.Total());
    });
  }

 private:
  const int64_t outer_, channels_, inner_;
};

}  // namespace

std::unique_ptr<Primitive> SumTo(const NodeSpec& node) {
  if (!Fits(node)) return SumToOfBlocks(node);
  const std::vector<AxisRun> runs = RunsOf(node.inputs[0].shape, node.outputs[0].shape);
  if (runs.size() == 2 && !runs[0].kept)
    return std::make_unique<SumRowsKernel>(runs[0].extent, runs[1].extent);
  if (runs.size() == 3 && !runs[0].kept)
    return std::make_unique<SumPlanesKernel>(runs[0].extent, runs[1].extent, runs[2].extent);
  if (runs.size() == 2) return std::make_unique<SumPlanesKernel>(1, runs[0].extent, runs[1].extent);
  return nullptr;
}

}  // namespace ringmaster::kernels::vector
