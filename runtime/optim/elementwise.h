// One pass over memory for the optimizers of this folder.
#ifndef RINGMASTER_RUNTIME_OPTIM_ELEMENTWISE_H_
#define RINGMASTER_RUNTIME_OPTIM_ELEMENTWISE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/device/parallel.h"

namespace ringmaster::optim {

// Calls body(begin, end) for consecutive blocks of [0, size), in parallel where that pays. The loop
// over a block is left to `body`, so that the compiler can vectorise it.
template <typename Body>
void ForEachBlock(size_t size, const Body& body) {
  constexpr size_t kBlock = 4096;  // a block of each of four buffers stays in the first cache
  const auto blocks = static_cast<int64_t>((size + kBlock - 1) / kBlock);
  device::ParallelFor(blocks, kBlock, [&](int64_t block) {
    const size_t begin = static_cast<size_t>(block) * kBlock;
    body(begin, std::min(begin + kBlock, size));
  });
}

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_ELEMENTWISE_H_
