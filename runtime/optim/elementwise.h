// One pass over memory for the optimizers of this folder.
#ifndef RINGMASTER_RUNTIME_OPTIM_ELEMENTWISE_H_
#define RINGMASTER_RUNTIME_OPTIM_ELEMENTWISE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "runtime/device/parallel.h"
#include "runtime/device/wide.h"

namespace ringmaster::optim {

inline constexpr size_t kBlock = 4096;  // a block of each of four buffers stays in the first cache

// Calls body(begin, end) for consecutive blocks of [0, size), in parallel where that pays. The loop
// over a block is left to `body`, so that the compiler can vectorise it, for each kind of
// processor.
template <typename Body>
void ForEachBlock(size_t size, const Body& body) {
  const auto blocks = static_cast<int64_t>((size + kBlock - 1) / kBlock);
  device::ParallelFor(blocks, kBlock, [&](int64_t block) {
    const size_t begin = static_cast<size_t>(block) * kBlock;
    device::WithWidestVectors([&] { body(begin, std::min(begin + kBlock, size)); });
  });
}

// A rate as a float, and finite: infinity times a zero is no number.
inline float FiniteRate(double rate) {
  return static_cast<float>(std::min(rate, double{std::numeric_limits<float>::max()}));
}

// The sum of value(i)² over i in [0, size), in double and in an order that depends on `size` alone:
// of blocks, one after another. So many blocks at once that their sums lie on the stack.
template <typename Value>
double SumOfSquares(size_t size, const Value& value) {
  constexpr size_t kLanes = 8;  // independent sums, for the vector unit
  constexpr size_t kBlocks = 512;
  std::array<double, kBlocks> blocks;
  double sum = 0;
  for (size_t first = 0; first < size; first += kBlocks * kBlock) {
    const size_t count = std::min(kBlocks * kBlock, size - first);
    ForEachBlock(count, [&](size_t begin, size_t end) {
      std::array<double, kLanes> lanes{};
      size_t i = begin;
      for (; i + kLanes <= end; i += kLanes) {
        for (size_t lane = 0; lane < kLanes; ++lane) {
          const double v = value(first + i + lane);
          lanes[lane] += v * v;
        }
      }
      for (; i < end; ++i) {
        const double v = value(first + i);
        lanes[(i - begin) % kLanes] += v * v;
      }
      double block = 0;
      for (const double lane : lanes) block += lane;
      blocks[begin / kBlock] = block;
    });
    for (size_t i = 0; i * kBlock < count; ++i) sum += blocks[i];
  }
  return sum;
}

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_ELEMENTWISE_H_
