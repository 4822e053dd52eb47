// Messages between two ranks through memory that both have mapped.
//
// Each direction is a ring of slots, one cache line each, and a ring of bytes. A slot describes a
// piece of a message; up to kInlineBytes lie in it, other pieces in the ring of bytes, or on the
// sender's board, which others read as well (board.h). A slot is published by writing its number
// into it, last, so the receiver looks at one line, which holds the whole message where it is
// small; the sender looks at the receiver's counters only when it finds no room. (The slot that
// carries its own sequence number: D. Vyukov's bounded queue.)
//
// A side that is about to sleep says so (Doze); the other, after it has moved something, asks
// (MustWake) and wakes it by other means.
//
// Nothing that the other process writes can make this one touch memory outside the rings. One
// thread on each side.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_CHANNEL_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_CHANNEL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/collectives/operation.h"
#include "runtime/collectives/transport/shm/board.h"
#include "runtime/collectives/transport/shm/line.h"
#include "runtime/collectives/transport/shm/processors.h"
#include "runtime/collectives/transport/shm/segment.h"

namespace ringmaster::collectives::shm {

inline constexpr size_t kSlots = 64;
inline constexpr size_t kInlineBytes = 32;
inline constexpr size_t kMaxName = 200;

// What the two sides of a channel share, before the two rings of bytes.
struct Slot {
  std::atomic<uint64_t> number;  // from 1; what it was before, until the rest is there
  uint64_t sequence;
  uint64_t tag;
  uint32_t length;                // of the whole message
  uint32_t piece;                 // bytes of it here; with kOnBoard, on the board
  std::byte bytes[kInlineBytes];  // or their place there
};
inline constexpr uint32_t kOnBoard = uint32_t{1} << 31;
static_assert(sizeof(Slot) == kLine && std::atomic<uint64_t>::is_always_lock_free);

// What a side is doing, for the other's message when they diverge. It may be read while it is
// written: `version` is odd meanwhile, and another one when that is done, so a reader knows whether
// what it has copied belongs together (a seqlock).
struct Text {
  std::atomic<uint64_t> bytes;
  std::atomic<uint64_t> words[kMaxName / sizeof(uint64_t)];
};
struct Description {
  std::atomic<uint64_t> version;
  std::atomic<uint64_t> sequence;  // alone where only that changes
  std::atomic<uint64_t> kind;
  std::atomic<uint64_t> type;
  std::atomic<uint64_t> count;
  Text name;
  Text note;
  Text group;
};

struct Side {  // written by its rank
  alignas(2 * kLine) Slot slots[kSlots];
  alignas(2 * kLine) std::atomic<uint64_t> taken_slots;  // of the other side's, by this one
  std::atomic<uint64_t> taken_bytes;
  std::atomic<BoardPlace> taken_board;  // behind what it has taken of the other side's board
  alignas(2 * kLine) std::atomic<uint32_t> asleep;
  alignas(2 * kLine) std::atomic<uint32_t> away;
  alignas(2 * kLine) Description description;
  // What this side's rank may run on.
  alignas(2 * kLine) std::atomic<uint64_t> allowed[Processors::kMost / 64];
  std::atomic<uint64_t> limit;
  std::atomic<uint64_t> limited_group;
  // Where this side's board is, and whether it has mapped the other one's: a BoardUse.
  std::atomic<uint64_t> board_bytes;
  Text board_name;
  std::atomic<uint32_t> board_use;
};
enum class BoardUse : uint32_t { kUnknown, kReads, kCannot };

class Channel {
 public:
  // The size of a segment whose rings hold `ring_bytes` each, a power of two from kMinRing on.
  static size_t SegmentBytes(size_t ring_bytes);
  static constexpr size_t kMinRing = 4096;

  // `side` is 0 for one of the two ranks and 1 for the other; `segment` has SegmentBytes bytes,
  // zero at first. `own` is what this rank may run on; `board` its board, if it has one.
  Channel(std::unique_ptr<Segment> segment, size_t ring_bytes, int side, const Processors& own,
          const Board* board = nullptr);

  Segment& segment() { return *segment_; }

  // Puts in what there is room for of a message, from byte *sent on, and at most kMostAtOnce bytes
  // of it where the other side makes room meanwhile. True when all of it is in.
  static constexpr size_t kMostAtOnce = 256 * 1024;
  bool Send(uint64_t sequence, uint64_t tag, std::span<const std::byte> message, size_t* sent);

  // Maps the other side's board, if it has one. To be called once it has made its side of the
  // channel. Where that fails it sends through the channel alone.
  void ReadTheirBoard();
  // Whether the other side has mapped this one's board, or will not.
  BoardUse TheirUseOfBoard() const {
    return static_cast<BoardUse>(theirs_->board_use.load(std::memory_order_acquire));
  }
  // Sends what this side has written to its board: the next `bytes` of a message of `length`. There
  // must be room for it.
  bool HasRoomForBoard();
  void SendOnBoard(uint64_t sequence, uint64_t tag, size_t length, BoardPlace place, size_t bytes);
  // The first place of this side's board that the other may still look at.
  BoardPlace HeldOnBoard() const;

  // The next piece that came.
  struct Piece {
    uint64_t sequence = 0;
    uint64_t tag = 0;
    size_t length = 0;                 // of the message, in each of its pieces
    std::span<const std::byte> bytes;  // in shared memory, until Take
    bool sound = true;                 // false: not what Send makes
  };
  bool HasNext() const;
  // False where there is none yet.
  bool Peek(Piece* piece);
  void Take();

  // Doze before sleeping: what the other side moves after it finds MustWake. Then look once more,
  // and only then sleep. Rise when awake.
  void Doze();
  void Rise() { mine_->asleep.store(0, std::memory_order_relaxed); }
  // Whether the other side sleeps and what this one has moved may be news; once per Doze.
  bool MustWake();

  // A side that leaves its processor to others for a moment says so: what it owes does not come
  // meanwhile. Whether the other has, or sleeps.
  void SetAway(bool away) { mine_->away.store(away ? 1 : 0, std::memory_order_relaxed); }
  bool IsOtherAway() const {
    return theirs_->away.load(std::memory_order_relaxed) != 0 ||
           theirs_->asleep.load(std::memory_order_relaxed) != 0;
  }

  // Says what this side does in the operation of that number; `tag`, of which equal operations have
  // the same, saves writing down again what is there.
  void Describe(uint64_t sequence, uint64_t tag, const Operation& operation,
                std::string_view group);
  // What the other side says of it; printable, whatever lies there. "another operation" where it
  // says nothing, no longer, or is about to.
  std::string TheirDescription(uint64_t sequence) const;

  // What the other rank may run on, once it has made its side of the channel; none before.
  Processors TheirProcessors() const;

 private:
  bool HasRoom(size_t ring_bytes);  // and for a slot
  Slot& NextSlot(uint64_t sequence, uint64_t tag, size_t length, uint32_t piece);
  void Publish(Slot& slot);
  std::span<const std::byte> OnTheirBoard(BoardPlace place, size_t bytes) const;

  const std::unique_ptr<Segment> segment_;
  const size_t ring_bytes_;
  Side* mine_;
  Side* theirs_;
  std::byte* out_;       // this side's ring of bytes
  const std::byte* in_;  // the other's
  std::unique_ptr<Segment> their_board_;

  // As sender.
  uint64_t sent_slots_ = 0;
  uint64_t sent_bytes_ = 0;  // of the ring, gaps included
  uint64_t free_slots_ = 0;  // up to which number of slots there is room, as last seen
  uint64_t free_bytes_ = 0;
  BoardPlace sent_board_ = 0;          // behind what was sent on the board
  bool moved_ = false;                 // since the last MustWake
  std::optional<uint64_t> described_;  // the tag of what this side has described
  // As receiver.
  uint64_t taken_slots_ = 0;
  uint64_t taken_bytes_ = 0;
  size_t piece_bytes_ = 0;       // of the ring, of the piece that Peek gave,
  BoardPlace behind_piece_ = 0;  // and where it ends on the board; 0: it is not there
};

}  // namespace ringmaster::collectives::shm

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_CHANNEL_H_
