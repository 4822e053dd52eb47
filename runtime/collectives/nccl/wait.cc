#include "runtime/collectives/nccl/wait.h"

#include <sched.h>
#include <thread>

#include <fmt/format.h>

#include "common/status.h"

namespace ringmaster::collectives::nccl {
namespace {

using std::chrono::steady_clock;

// So long a wait only lets others run in between; then it sleeps, so much at a time.
constexpr std::chrono::milliseconds kEager{1};
constexpr std::chrono::microseconds kNap{50};
// How long the ranks may take to tell one another why NCCL failed.
constexpr std::chrono::milliseconds kBetterCause{300};

void LetOthersRun(steady_clock::duration waited) {
  if (waited < kEager) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(kNap);
  }
}

}  // namespace

absl::Status WaitBeside(Transport& transport, std::chrono::milliseconds patience,
                        std::string_view what, absl::FunctionRef<absl::StatusOr<bool>()> done) {
  const auto start = steady_clock::now();
  absl::Status broken;
  auto until = start + patience;
  for (bool first = true;; first = false) {
    if (broken.ok()) {
      const absl::StatusOr<bool> over = done();
      if (over.ok() && *over) return absl::OkStatus();
      broken = over.status();
      if (!broken.ok()) until = steady_clock::now() + kBetterCause;
    }
    RM_RETURN_IF_ERROR(transport.Look(/*progress=*/first));
    const auto now = steady_clock::now();
    if (now >= until) break;
    LetOthersRun(now - start);
  }
  if (!broken.ok()) return broken;
  return absl::DeadlineExceededError(
      fmt::format("{} has not ended in {:.1f} s, though all ranks answer", what,
                  std::chrono::duration<double>(patience).count()));
}

}  // namespace ringmaster::collectives::nccl
