// What a rank writes once for all ranks that share memory with it, instead of once into the channel
// of each: a ring of bytes of its own, which they map. A channel's slot then says where on the
// board a piece lies, and its reader how far it has read there (channel.h).
//
// A place is taken anew when no reader may still look at it. There is no waiting for that: who
// finds no room sends through the channels instead.
//
// Open MPI's coll/sm and MVAPICH's slot-based collectives share what ranks of a node write in the
// same way. One thread on each side.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_BOARD_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_BOARD_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/collectives/transport/shm/segment.h"

namespace ringmaster::collectives::shm {

// Bytes are counted from the board's making on, gaps at its end included; where they lie is this
// modulo its size.
using BoardPlace = uint64_t;

// Of a reader that has read all that was written for it.
inline constexpr BoardPlace kHoldsNothing = std::numeric_limits<BoardPlace>::max();

class Board {
 public:
  static constexpr size_t kBytes = size_t{1} << 20;

  // Errors as Segment::Make's.
  static absl::StatusOr<std::unique_ptr<Board>> Make(size_t bytes = kBytes);

  // Where readers find it.
  const std::string& name() const { return segment_->name(); }
  size_t size() const { return segment_->memory().size(); }
  // When all have mapped it.
  void Unlink() { segment_->Unlink(); }
  bool has_name() const { return segment_->has_name(); }

  // Copies up to kMaxPiece bytes. `oldest_held` is the first place that any reader may still look
  // at, or kHoldsNothing; it is asked only where what was known of it leaves no room. None: there
  // is none.
  std::optional<BoardPlace> Write(std::span<const std::byte> bytes,
                                  absl::FunctionRef<BoardPlace()> oldest_held);

  // The place behind a piece of that length.
  static BoardPlace Behind(BoardPlace place, size_t bytes);

 private:
  explicit Board(std::unique_ptr<Segment> segment) : segment_(std::move(segment)) {}

  const std::unique_ptr<Segment> segment_;
  BoardPlace next_ = 0;
  BoardPlace free_until_ = 0;  // as last seen
};

}  // namespace ringmaster::collectives::shm

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_BOARD_H_
