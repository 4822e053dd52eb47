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

// The sum of value(i)² over i in [begin, end), a block, in double.
template <typename Value>
double SumOfSquaresIn(size_t begin, size_t end, const Value& value) {
  constexpr size_t kLanes = 8;  // independent sums, for the vector unit
  std::array<double, kLanes> lanes{};
  size_t i = begin;
  for (; i + kLanes <= end; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double v = value(i + lane);
      lanes[lane] += v * v;
    }
  }
  for (; i < end; ++i) {
    const double v = value(i);
    lanes[(i - begin) % kLanes] += v * v;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

// Calls body(begin, end) as ForEachBlock does; it returns kSums numbers. Returns what they add up
// to, block after block, whatever the number of threads. So many blocks at once that theirs lie on
// the stack.
template <size_t kSums, typename Body>
std::array<double, kSums> SumBlocks(size_t size, const Body& body) {
  constexpr size_t kAtOnce = 512;
  std::array<std::array<double, kSums>, kAtOnce> blocks;
  std::array<double, kSums> sums{};
  for (size_t first = 0; first < size; first += kAtOnce * kBlock) {
    const size_t count = std::min(kAtOnce * kBlock, size - first);
    ForEachBlock(count, [&](size_t begin, size_t end) {
      blocks[begin / kBlock] = body(first + begin, first + end);
    });
    for (size_t block = 0; block * kBlock < count; ++block) {
      for (size_t i = 0; i < kSums; ++i) sums[i] += blocks[block][i];
    }
  }
  return sums;
}

// The sum of value(i)² over i in [0, size), in double and in an order that depends on `size` alone.
template <typename Value>
double SumOfSquares(size_t size, const Value& value) {
  return SumBlocks<1>(size, [&](size_t begin, size_t end) {
    return std::array{SumOfSquaresIn(begin, end, value)};
  })[0];
}

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_ELEMENTWISE_H_
