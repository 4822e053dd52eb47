// nccl.h where neither NCCL's nor CUDA's headers were found when this was built.
#include "runtime/collectives/nccl/nccl.h"

namespace ringmaster::collectives::nccl {

absl::StatusOr<int> CountDevices() {
  return absl::UnimplementedError(
      "this program was built without NCCL: nccl.h or cuda.h was not there when CMake configured; "
      "`make nccl` fetches both, once");
}

bool MayShareDevices() {
  return false;
}

absl::Status Attach(Communicator& /*communicator*/, std::chrono::milliseconds /*timeout*/) {
  return CountDevices().status();
}

}  // namespace ringmaster::collectives::nccl
