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
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_RING_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_RING_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// out = every rank's `in` combined around the ring. Equal lengths; the same memory or no overlap.
absl::Status RingAllreduce(Transport& transport, const Combiner& combine, ConstElements in,
                           Elements out, size_t segment_bytes);

// The first half of that: `in` is cut into `chunks`, one per rank, and afterwards `work` holds the
// combined chunk of this rank (its other chunks hold what was on the way). `work` is as long as
// `in`, and the same memory or without overlap.
absl::Status RingReduceScatter(Transport& transport, const Combiner& combine, ConstElements in,
                               std::span<const Piece> chunks, Elements work, size_t segment_bytes);

// out = the parts one after another; part_bytes[r] is that of rank r.
absl::Status RingAllgather(Transport& transport, std::span<const std::byte> mine,
                           std::span<const size_t> part_bytes, std::span<std::byte> out,
                           size_t segment_bytes);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_RING_H_
