#include "runtime/collectives/nccl/plan.h"

#include <algorithm>
#include <iterator>

#include "common/check.h"
#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives::nccl {
namespace {

using Kind = Call::Kind;

// Where arrays that share a slot begin: what the device's wide loads and stores like.
constexpr size_t kAlignment = 256;

// The equal shares of a slot that `shares` arrays get.
size_t ShareOf(size_t slot_bytes, size_t shares) {
  const size_t share = slot_bytes / shares / kAlignment * kAlignment;
  RM_CHECK(share > 0, "a slot of the device's memory is too small for so many ranks");
  return share;
}

Upload From(ConstElements elements, size_t at) {
  return {elements.data(), at, elements.bytes().size()};
}
Download To(Elements elements, size_t at) {
  return {elements.data(), at, elements.bytes().size()};
}

// One rank's piece of its part in a step of an operation whose arrays have a part for each rank.
struct PartPiece {
  Piece piece;    // of the whole array, in elements
  size_t at = 0;  // in the slot
};

// The steps of such an operation: in each, the next piece of every part. The parts' pieces lie one
// behind another where all are equally long, so that one call does for all, else each at its share.
class Columns {
 public:
  Columns(std::span<const size_t> counts, size_t element_bytes, size_t slot_bytes)
      : parts_(PartsOf(counts)),
        element_bytes_(element_bytes),
        share_bytes_(ShareOf(slot_bytes, counts.size())),
        largest_(share_bytes_ / element_bytes) {
    const size_t longest = counts.empty() ? 0 : *std::ranges::max_element(counts);
    steps_ = (longest + largest_ - 1) / largest_;
  }

  size_t steps() const { return steps_; }

  std::vector<PartPiece> In(size_t step) const {
    std::vector<PartPiece> pieces;
    const size_t done = step * largest_;
    for (const Piece& part : parts_) {
      const size_t left = part.count - std::min(part.count, done);
      pieces.push_back({{part.offset + std::min(part.count, done), std::min(left, largest_)}, 0});
    }
    const size_t stride =
        Equal(pieces) ? pieces.front().piece.count * element_bytes_ : share_bytes_;
    for (size_t rank = 0; rank < pieces.size(); ++rank) pieces[rank].at = rank * stride;
    return pieces;
  }

  static bool Equal(std::span<const PartPiece> pieces) {
    return std::ranges::all_of(
        pieces, [&](const PartPiece& p) { return p.piece.count == pieces.front().piece.count; });
  }

 private:
  const std::pmr::vector<Piece> parts_;
  const size_t element_bytes_;
  const size_t share_bytes_;
  const size_t largest_;  // elements of a part in one step
  size_t steps_ = 0;
};

std::vector<Piece> WholePieces(ConstElements array, size_t slot_bytes) {
  std::vector<Piece> pieces;
  std::ranges::copy(PiecesOf({0, array.count()}, slot_bytes / array.element_bytes()),
                    std::back_inserter(pieces));
  return pieces;
}

}  // namespace

std::vector<Step> PlanAllreduce(const Combiner& combiner, ConstElements in, Elements out,
                                size_t slot_bytes) {
  std::vector<Step> steps;
  for (const Piece& piece : WholePieces(in, slot_bytes)) {
    Step& step = steps.emplace_back();
    step.uploads = {From(in.Slice(piece.offset, piece.count), 0)};
    step.calls = {{Kind::kAllreduce, 0, 0, piece.count, combiner, 0}};
    step.downloads = {To(out.Slice(piece.offset, piece.count), 0)};
  }
  return steps;
}

std::vector<Step> PlanReduce(const Combiner& combiner, int rank, int root, ConstElements in,
                             Elements out, size_t slot_bytes) {
  std::vector<Step> steps;
  for (const Piece& piece : WholePieces(in, slot_bytes)) {
    Step& step = steps.emplace_back();
    step.uploads = {From(in.Slice(piece.offset, piece.count), 0)};
    step.calls = {{Kind::kReduce, 0, 0, piece.count, combiner, root}};
    if (rank == root) step.downloads = {To(out.Slice(piece.offset, piece.count), 0)};
  }
  return steps;
}

std::vector<Step> PlanBroadcast(int rank, int root, Elements data, size_t slot_bytes) {
  std::vector<Step> steps;
  for (const Piece& piece : PiecesOf({0, data.bytes().size()}, slot_bytes)) {
    Step& step = steps.emplace_back();
    std::byte* const at = data.data() + piece.offset;
    if (rank == root) step.uploads = {{at, 0, piece.count}};
    step.calls = {{Kind::kBroadcast, 0, 0, piece.count, {}, root}};
    step.calls.front().combiner.type = ElementType::kU8;
    if (rank != root) step.downloads = {{at, 0, piece.count}};
  }
  return steps;
}

std::vector<Step> PlanAllgather(int rank, ConstElements mine, std::span<const size_t> counts,
                                Elements out, size_t slot_bytes) {
  const Columns columns(counts, mine.element_bytes(), slot_bytes);
  const size_t own_offset = PartsOf(counts)[static_cast<size_t>(rank)].offset;
  std::vector<Step> steps;
  for (size_t s = 0; s < columns.steps(); ++s) {
    const std::vector<PartPiece> pieces = columns.In(s);
    const PartPiece& own = pieces[static_cast<size_t>(rank)];
    const Combiner moved{Reduction::kSum, mine.type()};
    Step& step = steps.emplace_back();
    if (own.piece.count > 0)
      step.uploads = {From(mine.Slice(own.piece.offset - own_offset, own.piece.count), own.at)};
    if (Columns::Equal(pieces))
      step.calls = {{Kind::kAllgather, own.at, 0, own.piece.count, moved, 0}};
    for (size_t r = 0; r < pieces.size(); ++r) {
      const auto& [piece, at] = pieces[r];
      if (piece.count == 0) continue;
      if (!Columns::Equal(pieces))
        step.calls.push_back({Kind::kBroadcast, at, at, piece.count, moved, static_cast<int>(r)});
      step.downloads.push_back(To(out.Slice(piece.offset, piece.count), at));
    }
  }
  return steps;
}

std::vector<Step> PlanReduceScatter(const Combiner& combiner, int rank, ConstElements in,
                                    std::span<const size_t> counts, Elements out,
                                    size_t slot_bytes) {
  const Columns columns(counts, in.element_bytes(), slot_bytes);
  const size_t own_offset = PartsOf(counts)[static_cast<size_t>(rank)].offset;
  std::vector<Step> steps;
  for (size_t s = 0; s < columns.steps(); ++s) {
    const std::vector<PartPiece> pieces = columns.In(s);
    const PartPiece& own = pieces[static_cast<size_t>(rank)];
    Step& step = steps.emplace_back();
    if (Columns::Equal(pieces))
      step.calls = {{Kind::kReduceScatter, 0, own.at, own.piece.count, combiner, 0}};
    for (size_t r = 0; r < pieces.size(); ++r) {
      const auto& [piece, at] = pieces[r];
      if (piece.count == 0) continue;
      step.uploads.push_back(From(in.Slice(piece.offset, piece.count), at));
      if (!Columns::Equal(pieces))
        step.calls.push_back({Kind::kReduce, at, at, piece.count, combiner, static_cast<int>(r)});
    }
    if (own.piece.count > 0)
      step.downloads = {To(out.Slice(own.piece.offset - own_offset, own.piece.count), own.at)};
  }
  return steps;
}

// The share of a message is what `most_messages` leave it, not what this rank has: the rank at its
// other end may have more or less of them.
std::vector<Step> PlanExchange(const Exchange& exchange, size_t slot_bytes) {
  const size_t share = ShareOf(slot_bytes, exchange.most_messages);
  const Combiner bytes{Reduction::kSum, ElementType::kU8};
  size_t longest = 0;
  for (const Outgoing& message : exchange.sends) longest = std::max(longest, message.bytes.size());
  for (const Incoming& message : exchange.receives)
    longest = std::max(longest, message.bytes.size());
  std::vector<Step> steps;
  for (size_t done = 0; done < longest; done += share) {
    Step& step = steps.emplace_back();
    size_t at = 0;
    const auto next = [&](size_t size) { return size > done ? std::min(size - done, share) : 0; };
    for (const Outgoing& message : exchange.sends) {
      const size_t size = next(message.bytes.size());
      if (size == 0) continue;
      step.uploads.push_back({message.bytes.data() + done, at, size});
      step.calls.push_back({Kind::kSend, at, at, size, bytes, message.to});
      at += share;
    }
    for (const Incoming& message : exchange.receives) {
      const size_t size = next(message.bytes.size());
      if (size == 0) continue;
      step.calls.push_back({Kind::kReceive, at, at, size, bytes, message.from});
      step.downloads.push_back({message.bytes.data() + done, at, size});
      at += share;
    }
  }
  return steps;
}

}  // namespace ringmaster::collectives::nccl
