// Arrays between two ranks, in pieces of at most a segment: what most algorithms consist of. Both
// sides must cut the same array the same way, so both use these. Called inside an operation of the
// transport; errors and how long memory must stay as Transport's.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_TRANSFER_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_TRANSFER_H_

#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// Whole elements of a piece: at least one.
size_t PieceElements(size_t element_bytes, size_t segment_bytes);

// Posts the sends.
void SendPieces(Transport& transport, int to, ConstElements from, size_t segment_bytes);

// Posts the receives; adds their receipts to `receipts`.
void ReceivePieces(Transport& transport, int from, Elements into, size_t segment_bytes,
                   Receipts* receipts);

// The same, with what arrives combined: into = mine (reduction) theirs.
void CombinePieces(Transport& transport, int from, const Combiner& combiner, ConstElements mine,
                   Elements into, size_t segment_bytes, Receipts* receipts);

// All ranks but this one, or all of `ranks`, of which this one is one, from the next on: so no rank
// is everybody's first. In the transport's workspace.
std::pmr::vector<int> OthersOf(Transport& transport);
std::pmr::vector<int> OthersOf(Transport& transport, std::span<const int> ranks);

absl::Status WaitForAll(Transport& transport, std::span<const Receipt> receipts);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_TRANSFER_H_
