#include "runtime/tensor/finite.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "runtime/device/parallel.h"
#include "runtime/device/wide.h"

namespace ringmaster::tensor {
namespace {

// Looks at all of a block, without a branch, for nearly always all are: without their signs,
// numbers are ordered as their bits are, and what is infinite or no number lies from `infinity` on.
template <typename Bits, typename Float>
bool BlockIsFinite(std::span<const Float> values, Bits infinity) {
  constexpr Bits kMagnitude = std::numeric_limits<Bits>::max();
  constexpr size_t kTogether = 256 / sizeof(Bits);  // in several registers: one waits for itself
  Bits largest[kTogether] = {};
  size_t i = 0;
  for (; i + kTogether <= values.size(); i += kTogether) {
    for (size_t k = 0; k < kTogether; ++k)
      largest[k] = std::max(largest[k], std::bit_cast<Bits>(values[i + k]) & kMagnitude);
  }
  for (; i < values.size(); ++i)
    largest[0] = std::max(largest[0], std::bit_cast<Bits>(values[i]) & kMagnitude);
  Bits all = 0;
#pragma omp simd reduction(max : all)
  for (size_t k = 0; k < kTogether; ++k) all = std::max(all, largest[k]);
  return all < infinity;
}

template <typename Bits, typename Float>
bool AllBlocksFinite(std::span<const Float> values, Bits infinity) {
  constexpr size_t kBlock = 1 << 14;
  const auto blocks = static_cast<int64_t>((values.size() + kBlock - 1) / kBlock);
  std::atomic<bool> finite = true;
  device::ParallelFor(blocks, kBlock / 4, [&](int64_t block) {
    const size_t begin = static_cast<size_t>(block) * kBlock;
    const auto own = values.subspan(begin, std::min(kBlock, values.size() - begin));
    device::WithWidestVectors([&] {
      if (!BlockIsFinite(own, infinity)) finite.store(false, std::memory_order_relaxed);
    });
  });
  return finite;
}

}  // namespace

bool AllFinite(std::span<const float> values) {
  return AllBlocksFinite(values, int32_t{0x7f800000});
}
bool AllFinite(std::span<const double> values) {
  return AllBlocksFinite(values, int64_t{0x7ff0000000000000});
}

}  // namespace ringmaster::tensor
