#include "runtime/collectives/transport/shm/board.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "common/check.h"
#include "common/status.h"
#include "runtime/collectives/transport/shm/line.h"

namespace ringmaster::collectives::shm {

absl::StatusOr<std::unique_ptr<Board>> Board::Make(size_t bytes) {
  RM_CHECK(std::has_single_bit(bytes) && bytes >= kMaxPiece, "not the size of a board");
  RM_ASSIGN_OR_RETURN(std::unique_ptr<Segment> segment, Segment::Make(bytes));
  return std::unique_ptr<Board>(new Board(std::move(segment)));
}

BoardPlace Board::Behind(BoardPlace place, size_t bytes) {
  return place + WholeLines(bytes);
}

std::optional<BoardPlace> Board::Write(std::span<const std::byte> bytes,
                                       absl::FunctionRef<BoardPlace()> oldest_held) {
  RM_CHECK(bytes.size() <= kMaxPiece, "more than lies together");
  const size_t left = size() - next_ % size();
  const BoardPlace place = bytes.size() <= left ? next_ : next_ + left;
  const BoardPlace behind = Behind(place, bytes.size());
  if (behind > free_until_) {
    free_until_ = std::min(oldest_held(), next_) + size();
    if (behind > free_until_) return std::nullopt;
  }
  std::memcpy(segment_->memory().data() + place % size(), bytes.data(), bytes.size());
  next_ = behind;
  return place;
}

}  // namespace ringmaster::collectives::shm
