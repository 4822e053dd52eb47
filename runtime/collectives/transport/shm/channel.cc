#include "runtime/collectives/transport/shm/channel.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "common/check.h"

namespace ringmaster::collectives::shm {
namespace {

// Small enough that the receiver begins early, large enough that a slot costs little.
constexpr size_t kMaxPiece = 32 * 1024;

constexpr size_t RoundUp(size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

// Orders what was written before it with what is read after it, on both sides of a Doze.
void FullFence() {
#if defined(__SANITIZE_THREAD__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

uint32_t Put(std::string_view text, char* into) {
  const size_t bytes = std::min(text.size(), kMaxName);
  if (bytes > 0) std::memcpy(into, text.data(), bytes);
  return static_cast<uint32_t>(bytes);
}

std::string Get(const char* text, uint32_t bytes) {
  return {text, std::min<size_t>(bytes, kMaxName)};
}

}  // namespace

size_t Channel::SegmentBytes(size_t ring_bytes) {
  return 2 * (sizeof(Side) + ring_bytes);
}

Channel::Channel(std::unique_ptr<Segment> segment, size_t ring_bytes, int side,
                 const Processors& own)
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
}

bool Channel::Send(uint64_t sequence, uint64_t tag, std::span<const std::byte> message,
                   size_t* sent) {
  const size_t before = *sent;
  do {
    const std::span<const std::byte> rest = message.subspan(*sent);
    const bool in_slot = rest.size() <= kInlineBytes;
    const size_t at = sent_bytes_ % ring_bytes_;
    size_t piece = in_slot ? rest.size() : std::min({rest.size(), kMaxPiece, ring_bytes_ - at});
    const auto fits = [&] {
      return sent_slots_ < free_slots_ && (in_slot || RoundUp(piece) <= free_bytes_ - sent_bytes_);
    };
    if (!fits()) {
      // The counters only ever grow, and never past what was sent.
      const uint64_t slots = theirs_->taken_slots.load(std::memory_order_acquire);
      const uint64_t bytes = theirs_->taken_bytes.load(std::memory_order_acquire);
      if (slots > sent_slots_ || bytes > sent_bytes_) return false;
      free_slots_ = slots + kSlots;
      free_bytes_ = bytes + ring_bytes_;
      if (!fits()) return false;
    }
    Slot& slot = mine_->slots[sent_slots_ % kSlots];
    slot.sequence = sequence;
    slot.tag = tag;
    slot.length = static_cast<uint32_t>(message.size());
    slot.piece = static_cast<uint32_t>(piece);
    if (piece > 0) std::memcpy(in_slot ? slot.bytes : out_ + at, rest.data(), piece);
    if (!in_slot) sent_bytes_ += RoundUp(piece);
    slot.number.store(++sent_slots_, std::memory_order_release);
    moved_ = true;
    *sent += piece;
  } while (*sent < message.size() && *sent - before < kMostAtOnce);
  return *sent == message.size();
}

bool Channel::Peek(Piece* piece) {
  const Slot& slot = theirs_->slots[taken_slots_ % kSlots];
  if (slot.number.load(std::memory_order_acquire) != taken_slots_ + 1) return false;
  const size_t bytes = slot.piece;
  piece->sequence = slot.sequence;
  piece->tag = slot.tag;
  piece->length = slot.length;
  if (bytes <= kInlineBytes) {
    piece->bytes = {slot.bytes, bytes};
    piece_bytes_ = 0;
    return true;
  }
  const size_t at = taken_bytes_ % ring_bytes_;
  piece->sound = bytes <= ring_bytes_ - at;
  piece->bytes = {in_ + at, piece->sound ? bytes : 0};
  piece_bytes_ = RoundUp(piece->bytes.size());
  return true;
}

void Channel::Take() {
  taken_bytes_ += piece_bytes_;
  ++taken_slots_;
  mine_->taken_bytes.store(taken_bytes_, std::memory_order_release);
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
  if (described_ != tag) {
    mine_->kind = static_cast<uint32_t>(operation.kind);
    mine_->type = static_cast<uint32_t>(operation.type);
    mine_->count = operation.count;
    mine_->name_bytes = Put(operation.name, mine_->name);
    mine_->note_bytes = Put(operation.note, mine_->note);
    mine_->group_bytes = Put(group, mine_->group);
    described_ = tag;
  }
  mine_->sequence.store(sequence, std::memory_order_release);
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
  const Side& side = *theirs_;
  if (side.sequence.load(std::memory_order_acquire) != sequence) return "another operation";
  const uint32_t kind = side.kind;
  const uint32_t type = side.type;
  if (kind >= kOperationKinds || type > static_cast<uint32_t>(ElementType::kF64))
    return "another operation";
  Operation operation;
  operation.kind = static_cast<OperationKind>(kind);
  operation.type = static_cast<ElementType>(type);
  operation.count = side.count;
  const std::string name = Get(side.name, side.name_bytes);
  operation.name = name;
  operation.note = Get(side.note, side.note_bytes);
  std::string text = operation.Describe();
  const std::string group = Get(side.group, side.group_bytes);
  if (!group.empty()) text += fmt::format(", in group \"{}\"", group);
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, '?');
  return text;
}

}  // namespace ringmaster::collectives::shm
