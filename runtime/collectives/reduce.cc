#include "runtime/collectives/reduce.h"

#include <cstring>
#include <functional>
#include <vector>

#include "common/status.h"
#include "runtime/collectives/direct.h"
#include "runtime/collectives/doubling.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/ring.h"

namespace ringmaster::collectives {
namespace {

// Up to here the number of steps costs more than the bytes do.
constexpr size_t kSmallBytes = 8 * 1024;

void Copy(ConstElements from, Elements to) {
  if (from.count() > 0) std::memmove(to.data(), from.data(), from.bytes().size());
}

// Runs `sum` on the values in a type that is wide enough, and divides what comes out.
absl::Status Average(Transport& transport, ConstElements in, Elements out,
                     const std::function<absl::Status(ConstElements, Elements)>& sum) {
  const ElementType wide = WideTypeOf(in.type());
  if (wide == in.type()) {
    RM_RETURN_IF_ERROR(sum(in, out));
    RM_RETURN_IF_ERROR(transport.Finish());  // what is divided was sent from until then
    DivideAndNarrow(out, transport.world(), out);
    return absl::OkStatus();
  }
  std::vector<std::byte> wide_in(in.count() * SizeOf(wide));
  std::vector<std::byte> wide_out(out.count() * SizeOf(wide));
  Widen(in, Elements(wide, wide_in));
  RM_RETURN_IF_ERROR(sum(ConstElements(wide, wide_in), Elements(wide, wide_out)));
  RM_RETURN_IF_ERROR(transport.Finish());
  DivideAndNarrow(ConstElements(wide, wide_out), transport.world(), out);
  return absl::OkStatus();
}

absl::Status AllreducePlain(Transport& transport, const Combiner& combine, ConstElements in,
                            Elements out, size_t segment_bytes) {
  if (transport.world() == 1) {
    Copy(in, out);
    return absl::OkStatus();
  }
  if (in.bytes().size() <= kSmallBytes) return DoublingAllreduce(transport, combine, in, out);
  return RingAllreduce(transport, combine, in, out, segment_bytes);
}

absl::Status ReduceScatterPlain(Transport& transport, const Combiner& combine, ConstElements in,
                                std::span<const size_t> counts, Elements out,
                                size_t segment_bytes) {
  const std::vector<Piece> chunks = PartsOf(counts);
  const Piece mine = chunks[static_cast<size_t>(transport.rank())];
  if (transport.world() == 1) {
    Copy(in, out);
    return absl::OkStatus();
  }
  std::vector<std::byte> memory(in.bytes().size());
  const Elements work(in.type(), memory);
  RM_RETURN_IF_ERROR(RingReduceScatter(transport, combine, in, chunks, work, segment_bytes));
  RM_RETURN_IF_ERROR(transport.Finish());
  Copy(work.Slice(mine.offset, mine.count), out);
  return absl::OkStatus();
}

// Each rank combines a slice, and the root gathers them.
absl::Status ReducePlain(Transport& transport, const Combiner& combine, int root, ConstElements in,
                         Elements out, size_t segment_bytes) {
  std::vector<size_t> counts;
  for (int rank = 0; rank < transport.world(); ++rank)
    counts.push_back(SliceOf(in.count(), transport.world(), rank).count);
  std::vector<std::byte> memory(counts[static_cast<size_t>(transport.rank())] * in.element_bytes());
  const Elements mine(in.type(), memory);
  RM_RETURN_IF_ERROR(ReduceScatterPlain(transport, combine, in, counts, mine, segment_bytes));
  RM_RETURN_IF_ERROR(DirectGather(transport, root, mine, counts, out, segment_bytes));
  return transport.Finish();
}

}  // namespace

absl::Status Allreduce(Transport& transport, Reduction reduction, ConstElements in, Elements out,
                       size_t segment_bytes) {
  const auto run = [&](ConstElements from, Elements to) {
    return AllreducePlain(transport, {reduction, from.type()}, from, to, segment_bytes);
  };
  return reduction == Reduction::kAverage ? Average(transport, in, out, run) : run(in, out);
}

absl::Status ReduceScatter(Transport& transport, Reduction reduction, ConstElements in,
                           std::span<const size_t> counts, Elements out, size_t segment_bytes) {
  const auto run = [&](ConstElements from, Elements to) {
    return ReduceScatterPlain(transport, {reduction, from.type()}, from, counts, to, segment_bytes);
  };
  return reduction == Reduction::kAverage ? Average(transport, in, out, run) : run(in, out);
}

absl::Status Reduce(Transport& transport, Reduction reduction, int root, ConstElements in,
                    Elements out, size_t segment_bytes) {
  const Elements result = transport.rank() == root ? out : Elements(in.type(), {});
  const auto run = [&](ConstElements from, Elements to) {
    return ReducePlain(transport, {reduction, from.type()}, root, from, to, segment_bytes);
  };
  return reduction == Reduction::kAverage ? Average(transport, in, result, run) : run(in, result);
}

}  // namespace ringmaster::collectives
