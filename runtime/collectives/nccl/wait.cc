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
  for (bool first = true;; first = false) {
    RM_ASSIGN_OR_RETURN(const bool over, done());
    if (over) return absl::OkStatus();
    RM_RETURN_IF_ERROR(transport.Look(/*progress=*/first));
    const auto waited = steady_clock::now() - start;
    if (waited >= patience) break;
    LetOthersRun(waited);
  }
  return absl::DeadlineExceededError(
      fmt::format("{} has not ended in {:.1f} s, though all ranks answer", what,
                  std::chrono::duration<double>(patience).count()));
}

absl::Status LookForCause(Transport& transport) {
  const auto until = steady_clock::now() + kBetterCause;
  while (steady_clock::now() < until) {
    RM_RETURN_IF_ERROR(transport.Look(/*progress=*/false));
    std::this_thread::sleep_for(kNap);
  }
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives::nccl
