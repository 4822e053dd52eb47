// The accelerator by NCCL: plans each operation, has all ranks agree on it, and runs it.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_NCCL_NCCL_ACCELERATOR_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_NCCL_NCCL_ACCELERATOR_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "runtime/collectives/accelerator.h"
#include "runtime/collectives/nccl/comm.h"
#include "runtime/collectives/nccl/device.h"
#include "runtime/collectives/nccl/vendor.h"

namespace ringmaster::collectives::nccl {

class NcclAccelerator final : public Accelerator {
 public:
  // `vendor` must outlive it. `most_blocks` as of Device, the same on all ranks; `timeout` as of
  // Attach.
  NcclAccelerator(const Vendor& vendor, std::unique_ptr<Device> device, int most_blocks,
                  std::chrono::milliseconds timeout);
  // Leaves the communicators, but where the round has failed.
  ~NcclAccelerator() override;

  // Makes the round's communicator. Called as the operations are.
  absl::Status Prepare(Transport& transport);

  const char* name() const override { return "NCCL"; }
  bool Combines(const Combiner& combiner) const override { return CombinesAsWeDo(combiner); }
  absl::Status Allreduce(Transport& transport, const Combiner& combiner, ConstElements in,
                         Elements out) override;
  absl::Status ReduceScatter(Transport& transport, const Combiner& combiner, ConstElements in,
                             std::span<const size_t> counts, Elements out) override;
  absl::Status Reduce(Transport& transport, const Combiner& combiner, int root, ConstElements in,
                      Elements out) override;
  absl::Status Broadcast(Transport& transport, int root, Elements data) override;
  absl::Status Allgather(Transport& transport, ConstElements mine, std::span<const size_t> counts,
                         Elements out) override;
  absl::Status Run(Transport& transport, const Exchange& exchange) override;
  void Abort() override;

 private:
  // An operation of all ranks of the transport, and one of this rank and `peers`, whose steps are
  // the round communicator's.
  absl::Status RunAmongAll(Transport& transport, std::span<const Step> steps);
  absl::Status RunBetween(Transport& transport, std::span<const int> peers,
                          std::span<const Step> steps);
  absl::Status Begin();
  // The communicator of the transport's ranks; it is made with their first operation.
  absl::StatusOr<Comm*> CommOf(Transport& transport);
  // What the operation returns: where the ranks name a cause of the error, that one.
  absl::Status End(Transport& transport, const absl::Status& status) const;

  const Vendor& vendor_;
  const std::unique_ptr<Device> device_;
  const int most_blocks_;
  const std::chrono::milliseconds patience_;
  std::map<std::vector<int>, std::unique_ptr<Comm>> comms_;  // by their ranks in the round
  std::vector<int> round_;                                   // the round's own
  ncclUniqueId id_{};                                        // of the one that is being made
  uint64_t operations_ = 0;                                  // begun
};

}  // namespace ringmaster::collectives::nccl

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_NCCL_NCCL_ACCELERATOR_H_
