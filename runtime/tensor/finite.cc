#include "runtime/tensor/finite.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "runtime/device/parallel.h"
#include "runtime/device/wide.h"

namespace ringmaster::tensor {
namespace {

// Looks at all of a block, without a branch, for nearly always all are. `exponent` has the bits
// that are all ones in what is infinite or no number.
template <typename Bits, typename Float>
bool BlockIsFinite(std::span<const Float> values, Bits exponent) {
  Bits not_finite = 0;
#pragma omp simd reduction(| : not_finite)
  for (size_t i = 0; i < values.size(); ++i) {
    const Bits bits = std::bit_cast<Bits>(values[i]) & exponent;
    not_finite |= bits == exponent ? Bits{1} : Bits{0};
  }
  return not_finite == 0;
}

template <typename Bits, typename Float>
bool AllBlocksFinite(std::span<const Float> values, Bits exponent) {
  constexpr size_t kBlock = 1 << 14;
  const auto blocks = static_cast<int64_t>((values.size() + kBlock - 1) / kBlock);
  std::atomic<bool> finite = true;
  device::ParallelFor(blocks, kBlock / 4, [&](int64_t block) {
    const size_t begin = static_cast<size_t>(block) * kBlock;
    const auto own = values.subspan(begin, std::min(kBlock, values.size() - begin));
    device::WithWidestVectors([&] {
      if (!BlockIsFinite(own, exponent)) finite.store(false, std::memory_order_relaxed);
    });
  });
  return finite;
}

}  // namespace

bool AllFinite(std::span<const float> values) {
  return AllBlocksFinite(values, uint32_t{0x7f800000});
}
bool AllFinite(std::span<const double> values) {
  return AllBlocksFinite(values, uint64_t{0x7ff0000000000000});
}

}  // namespace ringmaster::tensor
