#include "runtime/device/threads.h"

#include <atomic>
#include <omp.h>

#include <fmt/format.h>

namespace ringmaster::device {
namespace {

constexpr int kMaxThreads = 1024;

// 0 until the number is fixed.
std::atomic<int> fixed_count{0};

// Fixes `count` unless a number is fixed; returns the fixed one.
int Fix(int count) {
  int expected = 0;
  return fixed_count.compare_exchange_strong(expected, count) ? count : expected;
}

}  // namespace

absl::Status SetThreadCount(int count) {
  if (count < 1 || count > kMaxThreads) {
    return absl::InvalidArgumentError(
        fmt::format("threads must lie in [1, {}], got {}", kMaxThreads, count));
  }
  const int fixed = Fix(count);
  if (fixed != count) {
    return absl::FailedPreconditionError(fmt::format(
        "this process already uses {} threads per worker, cannot change to {}", fixed, count));
  }
  AdoptThreadCount();
  return absl::OkStatus();
}

int ThreadCount() {
  const int count = fixed_count.load(std::memory_order_relaxed);
  return count != 0 ? count : Fix(1);
}

void AdoptThreadCount() {
  static thread_local bool adopted = false;
  if (adopted) return;
  omp_set_dynamic(0);
  omp_set_num_threads(ThreadCount());
  adopted = true;
}

}  // namespace ringmaster::device
