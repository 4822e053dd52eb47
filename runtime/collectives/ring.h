// The ring algorithms: each rank sends to the next and receives from the one before.
//
// Costs for W ranks and n bytes: the allreduce sends 2n(W-1)/W bytes from each rank in 2(W-1)
// steps, the allgather n(W-1)/W in W-1; both are the least possible. (Patarasuk and Yuan,
// "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009; Baidu's ring
// allreduce, 2017.) Pieces of `segment_bytes` flow through the ring one behind another, so a step
// need not be over for the next to begin.
//
// Called inside an operation of the transport; blocking and errors as Transport's. They do not call
// Finish.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_RING_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_RING_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// out = the sum over ranks of `in`, added around the ring. Equal lengths; the same memory or no
// overlap.
absl::Status RingAllreduceSum(Transport& transport, std::span<const float> in, std::span<float> out,
                              size_t segment_bytes);

// out = the parts one after another; part_bytes[r] is that of rank r.
absl::Status RingAllgather(Transport& transport, std::span<const std::byte> mine,
                           std::span<const size_t> part_bytes, std::span<std::byte> out,
                           size_t segment_bytes);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_RING_H_
