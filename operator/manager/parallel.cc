#include "operator/manager/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "common/status.h"

namespace ringmaster::manager {

absl::Status ForEachParallel(std::size_t count, int bound,
                             const std::function<absl::Status(std::size_t)>& call) {
  std::vector<absl::Status> results(count);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) results[i] = call(i);
  };
  {
    // This thread works too; the others are joined at the end of the block.
    const std::size_t helpers = std::min<std::size_t>(std::max(bound, 1), count);
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < helpers; ++i) threads.emplace_back(work);
    work();
  }
  for (const absl::Status& result : results) RM_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

}  // namespace ringmaster::manager
