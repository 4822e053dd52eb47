// NCCL under a communicator: its operations run on NVIDIA GPUs, one for each rank, wherever NCCL
// has something to do; arrays still lie in the host's memory and go through the device's.
//
//   RM_ASSIGN_OR_RETURN(auto comm, Communicator::Create(options, *listener));
//   RM_RETURN_IF_ERROR(nccl::Attach(*comm, options.operation_timeout));
//   RM_RETURN_IF_ERROR(comm->Allreduce(Reduction::kSum, gradient, sum, "conv1/weight"));
//
// The ranks agree on each operation over the round's connections before NCCL begins it, and listen
// to them while it runs. So a rank that diverges, dies, hangs or aborts is found, named and told to
// all as without NCCL, and what NCCL has begun is aborted. Barriers, byte strings, the ordered sum
// and minima and maxima of floats go over the connections (NCCL's pass over a NaN). Sums have other
// last bits than by our algorithms, the same on every rank.
//
// NCCL's own connections prove nothing and are not encrypted: they belong on a network of your own.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_NCCL_NCCL_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_NCCL_NCCL_H_

#include <chrono>

#include "absl/status/status.h"
#include "runtime/collectives/communicator.h"

namespace ringmaster::collectives::nccl {

// How many GPUs this process sees. kUnimplemented: this program was built without NCCL's headers;
// kFailedPrecondition: the driver, a GPU or NCCL's library is missing; the message says what to do.
absl::StatusOr<int> CountDevices();

// Whether the environment (NCCL_MULTI_RANK_GPU_ENABLE=1, of NCCL 2.30 and newer) lets ranks share a
// GPU where there are less than ranks: for tests, and for machines with one.
bool MayShareDevices();

// A collective call of all ranks of a round (not of a group), before or between its operations.
// Each takes a device that no other rank of its machine has (but MayShareDevices); groups get a
// communicator of NCCL's with their first operation. `timeout` is the communicator's
// operation_timeout: what NCCL was given may take twice that while all ranks answer.
//
// Errors as of CountDevices, on all ranks, where one has that problem, where there are less devices
// than ranks, versions differ, or a device has no memory left: the communicator is as it was. Any
// other error ends the round.
absl::Status Attach(Communicator& communicator, std::chrono::milliseconds timeout);

}  // namespace ringmaster::collectives::nccl

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_NCCL_NCCL_H_
