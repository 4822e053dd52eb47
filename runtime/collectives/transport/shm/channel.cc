#include "runtime/collectives/transport/shm/channel.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "common/check.h"

namespace ringmaster::collectives::shm {
namespace {

// Orders what was written before it with what is read after it, on both sides of a Doze.
void FullFence() {
#if defined(__SANITIZE_THREAD__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// Each word of a description is stored after the version that says that it changes (release), and
// loaded before the version is looked at again (acquire).
void Put(std::string_view text, Text* into) {
  const size_t bytes = std::min(text.size(), kMaxName);
  into->bytes.store(bytes, std::memory_order_release);
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min(sizeof(word), bytes - at));
    into->words[at / sizeof(word)].store(word, std::memory_order_release);
  }
}

std::string Get(const Text& text) {
  std::string copy(std::min<uint64_t>(text.bytes.load(std::memory_order_acquire), kMaxName), '\0');
  for (size_t at = 0; at < copy.size(); at += sizeof(uint64_t)) {
    const uint64_t word = text.words[at / sizeof(word)].load(std::memory_order_acquire);
    std::memcpy(copy.data() + at, &word, std::min(sizeof(word), copy.size() - at));
  }
  return copy;
}

}  // namespace

size_t Channel::SegmentBytes(size_t ring_bytes) {
  return 2 * (sizeof(Side) + ring_bytes);
}

Channel::Channel(std::unique_ptr<Segment> segment, size_t ring_bytes, int side,
                 const Processors& own, const Board* board)
    : segment_(std::move(segment)), ring_bytes_(ring_bytes) {
  RM_CHECK(std::has_single_bit(ring_bytes) && ring_bytes >= kMinRing, "not the size of a ring");
  RM_CHECK(segment_->memory().size() == SegmentBytes(ring_bytes), "a segment of another size");
  // Zero bytes are a Side in its first state.
  std::byte* const base = segment_->memory().data();
  Side* const sides = reinterpret_cast<Side*>(base);
  std::byte* const rings = base + 2 * sizeof(Side);
  mine_ = &sides[side];
  theirs_ = &sides[1 - side];
  out_ = rings + static_cast<size_t>(side) * ring_bytes;
  in_ = rings + static_cast<size_t>(1 - side) * ring_bytes;
  free_slots_ = kSlots;
  free_bytes_ = ring_bytes;
  for (size_t i = 0; i < own.allowed.size(); ++i)
    mine_->allowed[i].store(own.allowed[i], std::memory_order_relaxed);
  mine_->limit.store(own.limit, std::memory_order_relaxed);
  mine_->limited_group.store(own.group, std::memory_order_relaxed);
  if (board == nullptr) return;
  Put(board->name(), &mine_->board_name);
  mine_->board_bytes.store(board->size(), std::memory_order_release);
}

// The counters of the other side only ever grow, and never past what was sent.
bool Channel::HasRoom(size_t ring_bytes) {
  const auto has = [&] {
    return sent_slots_ < free_slots_ && ring_bytes <= free_bytes_ - sent_bytes_;
  };
  if (has()) return true;
  const uint64_t slots = theirs_->taken_slots.load(std::memory_order_acquire);
  const uint64_t bytes = theirs_->taken_bytes.load(std::memory_order_acquire);
  if (slots > sent_slots_ || bytes > sent_bytes_) return false;
  free_slots_ = slots + kSlots;
  free_bytes_ = bytes + ring_bytes_;
  return has();
}

Slot& Channel::NextSlot(uint64_t sequence, uint64_t tag, size_t length, uint32_t piece) {
  Slot& slot = mine_->slots[sent_slots_ % kSlots];
  slot.sequence = sequence;
  slot.tag = tag;
  slot.length = static_cast<uint32_t>(length);
  slot.piece = piece;
  return slot;
}

void Channel::Publish(Slot& slot) {
  slot.number.store(++sent_slots_, std::memory_order_release);
  moved_ = true;
}

bool Channel::Send(uint64_t sequence, uint64_t tag, std::span<const std::byte> message,
                   size_t* sent) {
  const size_t before = *sent;
  do {
    const std::span<const std::byte> rest = message.subspan(*sent);
    const bool in_slot = rest.size() <= kInlineBytes;
    const size_t at = sent_bytes_ % ring_bytes_;
    const size_t piece =
        in_slot ? rest.size() : std::min({rest.size(), kMaxPiece, ring_bytes_ - at});
    if (!HasRoom(in_slot ? 0 : WholeLines(piece))) return false;
    Slot& slot = NextSlot(sequence, tag, message.size(), static_cast<uint32_t>(piece));
    if (piece > 0) std::memcpy(in_slot ? slot.bytes : out_ + at, rest.data(), piece);
    if (!in_slot) sent_bytes_ += WholeLines(piece);
    Publish(slot);
    *sent += piece;
  } while (*sent < message.size() && *sent - before < kMostAtOnce);
  return *sent == message.size();
}

void Channel::ReadTheirBoard() {
  const uint64_t bytes = theirs_->board_bytes.load(std::memory_order_acquire);
  BoardUse use = BoardUse::kCannot;
  if (bytes > 0 && bytes <= Board::kBytes) {
    auto board = Segment::Open(Get(theirs_->board_name), bytes, Segment::Access::kRead);
    if (board.ok()) {
      their_board_ = *std::move(board);
      use = BoardUse::kReads;
    }
  }
  mine_->board_use.store(static_cast<uint32_t>(use), std::memory_order_release);
}

bool Channel::HasRoomForBoard() {
  return HasRoom(0);
}

void Channel::SendOnBoard(uint64_t sequence, uint64_t tag, size_t length, BoardPlace place,
                          size_t bytes) {
  Slot& slot = NextSlot(sequence, tag, length, static_cast<uint32_t>(bytes) | kOnBoard);
  std::memcpy(slot.bytes, &place, sizeof(place));
  sent_board_ = Board::Behind(place, bytes);
  Publish(slot);
}

BoardPlace Channel::HeldOnBoard() const {
  const BoardPlace taken = theirs_->taken_board.load(std::memory_order_acquire);
  return taken < sent_board_ ? taken : kHoldsNothing;
}

// Nothing where no board has it.
std::span<const std::byte> Channel::OnTheirBoard(BoardPlace place, size_t bytes) const {
  if (their_board_ == nullptr) return {};
  const std::span<const std::byte> board = their_board_->memory();
  const size_t at = place % board.size();
  return bytes <= board.size() - at ? board.subspan(at, bytes) : std::span<const std::byte>();
}

bool Channel::HasNext() const {
  const Slot& slot = theirs_->slots[taken_slots_ % kSlots];
  return slot.number.load(std::memory_order_acquire) == taken_slots_ + 1;
}

bool Channel::Peek(Piece* piece) {
  if (!HasNext()) return false;
  const Slot& slot = theirs_->slots[taken_slots_ % kSlots];
  // Each read once, whatever the other side does to it meanwhile.
  const uint32_t word = __atomic_load_n(&slot.piece, __ATOMIC_RELAXED);
  const size_t bytes = word & ~kOnBoard;
  piece->sequence = slot.sequence;
  piece->tag = slot.tag;
  piece->length = slot.length;
  behind_piece_ = 0;
  if ((word & kOnBoard) != 0) {
    const BoardPlace place =
        __atomic_load_n(reinterpret_cast<const BoardPlace*>(slot.bytes), __ATOMIC_RELAXED);
    piece->bytes = OnTheirBoard(place, bytes);
    piece->sound = piece->bytes.size() == bytes;
    piece_bytes_ = 0;
    behind_piece_ = Board::Behind(place, bytes);
    return true;
  }
  if (bytes <= kInlineBytes) {
    piece->bytes = {slot.bytes, bytes};
    piece_bytes_ = 0;
    return true;
  }
  const size_t at = taken_bytes_ % ring_bytes_;
  piece->sound = bytes <= ring_bytes_ - at;
  piece->bytes = {in_ + at, piece->sound ? bytes : 0};
  piece_bytes_ = WholeLines(piece->bytes.size());
  return true;
}

void Channel::Take() {
  taken_bytes_ += piece_bytes_;
  ++taken_slots_;
  mine_->taken_bytes.store(taken_bytes_, std::memory_order_release);
  if (behind_piece_ != 0) mine_->taken_board.store(behind_piece_, std::memory_order_release);
  mine_->taken_slots.store(taken_slots_, std::memory_order_release);
  moved_ = true;
}

void Channel::Doze() {
  mine_->asleep.store(1, std::memory_order_relaxed);
  FullFence();
}

bool Channel::MustWake() {
  if (!moved_) return false;
  moved_ = false;
  FullFence();
  return theirs_->asleep.load(std::memory_order_relaxed) != 0 &&
         theirs_->asleep.exchange(0, std::memory_order_relaxed) != 0;
}

void Channel::Describe(uint64_t sequence, uint64_t tag, const Operation& operation,
                       std::string_view group) {
  constexpr auto kAfter = std::memory_order_release;
  Description& mine = mine_->description;
  if (described_ == tag) return mine.sequence.store(sequence, kAfter);
  const uint64_t version = mine.version.load(std::memory_order_relaxed);
  mine.version.store(version + 1, std::memory_order_relaxed);
  mine.sequence.store(sequence, kAfter);
  mine.kind.store(static_cast<uint64_t>(operation.kind), kAfter);
  mine.type.store(static_cast<uint64_t>(operation.type), kAfter);
  mine.count.store(operation.count, kAfter);
  Put(operation.name, &mine.name);
  Put(operation.note, &mine.note);
  Put(group, &mine.group);
  mine.version.store(version + 2, kAfter);
  described_ = tag;
}

Processors Channel::TheirProcessors() const {
  Processors theirs;
  for (size_t i = 0; i < theirs.allowed.size(); ++i)
    theirs.allowed[i] = theirs_->allowed[i].load(std::memory_order_relaxed);
  theirs.limit = theirs_->limit.load(std::memory_order_relaxed);
  theirs.group = theirs_->limited_group.load(std::memory_order_relaxed);
  return theirs;
}

std::string Channel::TheirDescription(uint64_t sequence) const {
  constexpr auto kBefore = std::memory_order_acquire;
  const Description& theirs = theirs_->description;
  const uint64_t version = theirs.version.load(kBefore);
  const bool is_it = theirs.sequence.load(kBefore) == sequence;
  const uint64_t kind = theirs.kind.load(kBefore);
  const uint64_t type = theirs.type.load(kBefore);
  Operation operation;
  operation.count = theirs.count.load(kBefore);
  const std::string name = Get(theirs.name);
  const std::string note = Get(theirs.note);
  const std::string group = Get(theirs.group);
  const bool whole = version % 2 == 0 && theirs.version.load(kBefore) == version;
  if (!is_it || !whole || kind >= kOperationKinds ||
      type > static_cast<uint64_t>(ElementType::kF64)) {
    return "another operation";
  }
  operation.kind = static_cast<OperationKind>(kind);
  operation.type = static_cast<ElementType>(type);
  operation.name = name;
  operation.note = note;
  std::string text = operation.Describe();
  if (!group.empty()) text += fmt::format(", in group \"{}\"", group);
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, '?');
  return text;
}

}  // namespace ringmaster::collectives::shm
