// One of NCCL's communicators: the round's, or a group's. It never blocks: what it cannot do at
// once goes on in NCCL's threads, and Ready says when it is done.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_NCCL_COMM_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_NCCL_COMM_H_

#include <limits>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "runtime/collectives/nccl/plan.h"
#include "runtime/collectives/nccl/vendor.h"

namespace ringmaster::collectives::nccl {

// Whether NCCL combines so, as combine.h wants it. It does not where a NaN must come out of a
// minimum or maximum: NCCL's pass over it.
bool CombinesAsWeDo(const Combiner& combiner);

// As many blocks of threads as NCCL likes.
inline constexpr int kAnyBlocks = std::numeric_limits<int>::max();

// Not thread-safe. The device's context must be current in each call.
class Comm {
 public:
  // Begins to join the other ranks that have the same id. `most_blocks`: of threads, in a call of
  // NCCL; the same on all ranks. `vendor` must outlive it. kInternal: an error of NCCL's, as of all
  // that follow.
  static absl::StatusOr<std::unique_ptr<Comm>> Join(const Vendor& vendor, const ncclUniqueId& id,
                                                    int rank, int world, int most_blocks);

  // Of one that was neither left nor aborted: aborts.
  ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  // Whether all that was begun is known to the device.
  absl::StatusOr<bool> Ready() const;

  // Queues the calls, as one group, on `stream`, with `slot` as the memory of their offsets. What
  // is queued on the stream behind them must wait for Ready.
  absl::Status Queue(std::span<const Call> calls, CUdeviceptr slot, CUstream stream);

  // Leaves in order, once all of this rank's calls are done; blocks for some seconds at most, then
  // aborts. Not beside an operation of another communicator.
  void Leave();

  // Ends whatever is on its way, here and so on the other ranks.
  void Abort();

 private:
  explicit Comm(const Vendor& vendor) : vendor_(vendor) {}
  ncclResult_t Issue(const Call& call, CUdeviceptr slot, CUstream stream);

  const Vendor& vendor_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace ringmaster::collectives::nccl

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_NCCL_COMM_H_
