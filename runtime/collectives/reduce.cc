#include "runtime/collectives/reduce.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/status.h"
#include "runtime/collectives/accelerator.h"
#include "runtime/collectives/algorithms/direct.h"
#include "runtime/collectives/algorithms/direct_reduce.h"
#include "runtime/collectives/algorithms/doubling.h"
#include "runtime/collectives/algorithms/halving_doubling.h"
#include "runtime/collectives/algorithms/one_shot.h"
#include "runtime/collectives/algorithms/ring.h"
#include "runtime/collectives/algorithms/tree.h"
#include "runtime/collectives/algorithms/two_level.h"
#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives {
namespace {

void Copy(ConstElements from, Elements to) {
  if (from.count() > 0) std::memmove(to.data(), from.data(), from.bytes().size());
}

// Runs `sum` on the values in a type that is wide enough, scaled so that the sum fits, and divides
// what comes out.
absl::Status Average(Transport& transport, ConstElements in, Elements out,
                     absl::FunctionRef<absl::Status(ConstElements, Elements)> sum) {
  const ElementType wide = WideTypeOf(in.type());
  const double scale = AverageScale(in.type(), transport.world());
  if (wide == in.type()) {
    std::vector<std::byte> memory;
    ConstElements scaled = in;
    if (scale != 1) {
      const bool fits = out.count() == in.count();
      if (!fits) memory.resize(in.bytes().size());
      const Elements into = fits ? out : Elements(wide, memory);
      Widen(in, into, scale);
      scaled = into;
    }
    RM_RETURN_IF_ERROR(sum(scaled, out));
    RM_RETURN_IF_ERROR(transport.Finish());  // what is divided was sent from until then
    DivideAndNarrow(out, transport.world(), out, scale);
    return absl::OkStatus();
  }
  std::vector<std::byte> wide_in(in.count() * SizeOf(wide));
  std::vector<std::byte> wide_out(out.count() * SizeOf(wide));
  Widen(in, Elements(wide, wide_in), scale);
  RM_RETURN_IF_ERROR(sum(ConstElements(wide, wide_in), Elements(wide, wide_out)));
  RM_RETURN_IF_ERROR(transport.Finish());
  DivideAndNarrow(ConstElements(wide, wide_out), transport.world(), out, scale);
  return absl::OkStatus();
}

// The places of this rank in the trees that the method takes, from `root`.
Trees TreesFrom(const Method& method, int root, const Transport& transport) {
  const int world = transport.world();
  const int rank = transport.rank();
  if (method.algorithm == Algorithm::kDoubleTree) return DoubleTreeFrom(world, root, rank);
  if (method.algorithm == Algorithm::kTwoLevel) return {TwoLevelTree(*method.nodes, root, rank)};
  return {BinomialTree(world, root, rank)};
}

size_t PieceBytes(const Method& method, size_t trees, size_t bytes) {
  return TreePieceBytes(bytes / trees, method.segment_bytes);
}

absl::Status AllreduceOverTrees(Transport& transport, const Method& method, const Combiner& combine,
                                ConstElements in, Elements out) {
  const bool two = method.algorithm == Algorithm::kDoubleTree;
  const Trees trees = two ? DoubleTree(transport.world(), transport.rank())
                          : Trees{BinomialTree(transport.world(), 0, transport.rank())};
  return TreeAllreduce(transport, trees, combine, in, out,
                       PieceBytes(method, trees.size(), in.bytes().size()));
}

absl::Status AllreducePlain(Transport& transport, const Method& method, const Combiner& combine,
                            ConstElements in, Elements out) {
  if (method.accelerator != nullptr)
    return method.accelerator->Allreduce(transport, combine, in, out);
  if (transport.world() == 1) {
    Copy(in, out);
    return absl::OkStatus();
  }
  switch (method.algorithm) {
    case Algorithm::kDirect:
      return DirectAllreduce(transport, combine, in, out, method.direct_piece_bytes);
    case Algorithm::kDoubling:
      return DoublingAllreduce(transport, combine, in, out);
    case Algorithm::kOneShot:
      return OneShotAllreduce(transport, combine, in, out, method.segment_bytes);
    case Algorithm::kHalvingDoubling:
      return HalvingDoublingAllreduce(transport, combine, in, out, method.segment_bytes);
    case Algorithm::kTree:
    case Algorithm::kDoubleTree:
      return AllreduceOverTrees(transport, method, combine, in, out);
    case Algorithm::kTwoLevel:
      return TwoLevelAllreduce(transport, method, combine, in, out);
    default:
      return RingAllreduce(transport, combine, in, out, method.segment_bytes);
  }
}

absl::Status ReduceScatterPlain(Transport& transport, const Method& method, const Combiner& combine,
                                ConstElements in, std::span<const size_t> counts, Elements out) {
  if (method.accelerator != nullptr)
    return method.accelerator->ReduceScatter(transport, combine, in, counts, out);
  const auto chunks = PartsOf(counts, &transport.workspace());
  const Piece mine = chunks[static_cast<size_t>(transport.rank())];
  if (transport.world() == 1) {
    Copy(in, out);
    return absl::OkStatus();
  }
  std::vector<std::byte> memory(in.bytes().size());
  const Elements work(in.type(), memory);
  RM_RETURN_IF_ERROR(RingReduceScatter(transport, combine, in, chunks, work, method.segment_bytes));
  RM_RETURN_IF_ERROR(transport.Finish());
  Copy(work.Slice(mine.offset, mine.count), out);
  return absl::OkStatus();
}

// Each rank combines a slice, and the root gathers them.
absl::Status ReduceAndGather(Transport& transport, const Method& method, const Combiner& combine,
                             int root, ConstElements in, Elements out) {
  std::vector<size_t> counts;
  for (int rank = 0; rank < transport.world(); ++rank)
    counts.push_back(SliceOf(in.count(), transport.world(), rank).count);
  std::vector<std::byte> memory(counts[static_cast<size_t>(transport.rank())] * in.element_bytes());
  const Elements mine(in.type(), memory);
  RM_RETURN_IF_ERROR(ReduceScatterPlain(transport, method, combine, in, counts, mine));
  RM_RETURN_IF_ERROR(DirectGather(transport, root, mine, counts, out, method.segment_bytes));
  return transport.Finish();
}

absl::Status ReducePlain(Transport& transport, const Method& method, const Combiner& combine,
                         int root, ConstElements in, Elements out) {
  if (method.accelerator != nullptr)
    return method.accelerator->Reduce(transport, combine, root, in, out);
  if (transport.world() == 1) {
    Copy(in, out);
    return absl::OkStatus();
  }
  if (method.algorithm == Algorithm::kRing)
    return ReduceAndGather(transport, method, combine, root, in, out);
  const Trees trees = TreesFrom(method, root, transport);
  const bool passes_on =
      transport.rank() != root &&
      std::any_of(trees.begin(), trees.end(), [](const Tree& t) { return !t.children.empty(); });
  std::vector<std::byte> memory(passes_on ? in.bytes().size() : 0);
  const Elements work = passes_on ? Elements(in.type(), memory) : out;
  RM_RETURN_IF_ERROR(TreeReduce(transport, trees, combine, in, work,
                                PieceBytes(method, trees.size(), in.bytes().size())));
  return transport.Finish();
}

}  // namespace

absl::Status Allreduce(Transport& transport, const Method& method, Reduction reduction,
                       ConstElements in, Elements out) {
  const auto run = [&](ConstElements from, Elements to) {
    return AllreducePlain(transport, method, {reduction, from.type()}, from, to);
  };
  return reduction == Reduction::kAverage ? Average(transport, in, out, run) : run(in, out);
}

absl::Status ReduceScatter(Transport& transport, const Method& method, Reduction reduction,
                           ConstElements in, std::span<const size_t> counts, Elements out) {
  const auto run = [&](ConstElements from, Elements to) {
    return ReduceScatterPlain(transport, method, {reduction, from.type()}, from, counts, to);
  };
  return reduction == Reduction::kAverage ? Average(transport, in, out, run) : run(in, out);
}

absl::Status Reduce(Transport& transport, const Method& method, Reduction reduction, int root,
                    ConstElements in, Elements out) {
  const Elements result = transport.rank() == root ? out : Elements(in.type(), {});
  const auto run = [&](ConstElements from, Elements to) {
    return ReducePlain(transport, method, {reduction, from.type()}, root, from, to);
  };
  return reduction == Reduction::kAverage ? Average(transport, in, result, run) : run(in, result);
}

absl::Status Broadcast(Transport& transport, const Method& method, int root, Elements data) {
  if (method.accelerator != nullptr) return method.accelerator->Broadcast(transport, root, data);
  const Trees trees = TreesFrom(method, root, transport);
  return TreeBroadcast(transport, trees, data,
                       PieceBytes(method, trees.size(), data.bytes().size()));
}

}  // namespace ringmaster::collectives
