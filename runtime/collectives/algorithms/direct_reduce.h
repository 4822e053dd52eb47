// Reductions in two steps: each slice straight to the rank that combines it, and straight back.
// Called inside an operation of the transport; blocking and errors as Transport's. They do not call
// Finish.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DIRECT_REDUCE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DIRECT_REDUCE_H_

#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// Among `ranks`, of which this rank is one: slice s of `in` of all of them is combined by ranks[s],
// whose place s of `out` it comes to. There may be less slices than ranks. `out` is as long as
// `in`, and the same memory or without overlap; its other slices stay as they are. Where ranks[s]
// is alone, its slice is copied. A view of all that it is given.
//
// Between its two halves the rank may do something else, during which what the first one posted
// goes on. All of `ranks` must do the same there.
class SliceReduction {
 public:
  SliceReduction(Transport& transport, std::span<const int> ranks, const Combiner& combine,
                 ConstElements in, std::span<const Piece> slices, Elements out,
                 size_t segment_bytes);

  // Posts what goes to the next rank and comes from the one before: with two ranks all there is.
  void Begin();
  // Posts the rest; returns when this rank's slice is combined.
  absl::Status Finish();

 private:
  bool owns_slice() const { return me_ < slices_.size(); }
  void SendTo(size_t step);
  Receipt CombineFrom(size_t step, const Piece& piece);

  Transport& transport_;
  const std::span<const int> ranks_;
  const Combiner combine_;
  const ConstElements in_;
  const std::span<const Piece> slices_;
  const Elements out_;
  const size_t segment_bytes_;
  const size_t me_;                 // this rank's place
  std::pmr::vector<Piece> pieces_;  // of its slice
  Receipts sums_;                   // so far, by piece
};

// Each of `ranks` gets all slices of `data`, slice s from ranks[s]. Posts all of it; the receipts
// are added to `receipts`.
void SpreadSlices(Transport& transport, std::span<const int> ranks, Elements data,
                  std::span<const Piece> slices, size_t segment_bytes, Receipts* receipts);

// out = every rank's `in` combined as by these two, the second beginning while the first goes
// on: 2n(W-1)/W bytes out of each rank, over W-1 connections.
absl::Status DirectAllreduce(Transport& transport, const Combiner& combine, ConstElements in,
                             Elements out, size_t segment_bytes);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DIRECT_REDUCE_H_
