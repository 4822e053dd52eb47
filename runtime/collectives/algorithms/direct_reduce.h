// Reductions in two steps: each slice straight to the rank that combines it, and straight back.
// Called inside an operation of the transport; blocking and errors as Transport's. They do not call
// Finish.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DIRECT_REDUCE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DIRECT_REDUCE_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// Among `ranks`, of which this rank is one: slice s of `in` of all of them is combined by ranks[s],
// whose place s of `out` it comes to. There may be less slices than ranks. `out` is as long as
// `in`, and the same memory or without overlap; its other slices stay as they are. Where ranks[s]
// is alone, its slice is copied.
absl::Status DirectReduceSlices(Transport& transport, std::span<const int> ranks,
                                const Combiner& combine, ConstElements in,
                                std::span<const Piece> slices, Elements out, size_t segment_bytes);

// Each of `ranks` gets all slices of `data`, slice s from ranks[s].
absl::Status DirectSpreadSlices(Transport& transport, std::span<const int> ranks, Elements data,
                                std::span<const Piece> slices, size_t segment_bytes);

// out = every rank's `in` combined as by both of these, the second beginning while the first goes
// on: 2n(W-1)/W bytes out of each rank, over W-1 connections.
absl::Status DirectAllreduce(Transport& transport, const Combiner& combine, ConstElements in,
                             Elements out, size_t segment_bytes);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DIRECT_REDUCE_H_
