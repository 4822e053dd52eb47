// The data of a link that goes through shared memory.
#include "common/status.h"
#include "runtime/collectives/transport/tcp/link.h"

namespace ringmaster::collectives::tcp {
namespace {

// What a message costs beside its bytes, as if it were so many more.
constexpr size_t kMessageBytes = 1024;

// What may be put into shared memory before anybody looks up.
constexpr size_t kAheadBytes = 4 * Link::kSharedGulpBytes;

}  // namespace

bool Link::MaySendAhead() const {
  return held_.empty() && sent_ahead_ < kAheadBytes;
}

bool Link::MaySendOnBoard() {
  return path_ == Path::kSharedMemory && MaySendAhead() &&
         channel_->TheirUseOfBoard() == shm::BoardUse::kReads && channel_->HasRoomForBoard();
}

void Link::SendOnBoard(size_t length, shm::BoardPlace place, size_t bytes) {
  channel_->SendOnBoard(sequence_, tag_, length, place, bytes);
  shared_moved_ = true;
  sent_ahead_ += bytes + kMessageBytes;
}

bool Link::QueueShared(std::span<const std::byte> bytes, size_t sent) {
  if (sent > 0 && sent == bytes.size()) {
    bytes_sent_ += sent;
    return true;
  }
  if (MaySendAhead() && SendShared(sequence_, tag_, bytes, &sent)) return true;
  held_.Add([&](Held& held) {
    held.header = {.type = FrameType::kData,
                   .round = round_,
                   .sequence = sequence_,
                   .tag = tag_,
                   .length = bytes.size()};
    held.payload = bytes;
    held.sent = sent;
  });
  return false;
}

bool Link::SendShared(uint64_t sequence, uint64_t tag, std::span<const std::byte> payload,
                      size_t* sent) {
  const size_t before = *sent;
  const bool whole = channel_->Send(sequence, tag, payload, sent);
  if (whole) bytes_sent_ += payload.size();
  if (whole || *sent > before) shared_moved_ = true;
  sent_ahead_ += *sent - before + kMessageBytes;
  return whole;
}

absl::StatusOr<bool> Link::MoveShared() {
  bool moved = false;
  sent_ahead_ = 0;
  while (!held_.empty() && sent_ahead_ < kSharedGulpBytes) {
    Held& held = held_.front();
    const size_t before = held.sent;
    const bool whole = SendShared(held.header.sequence, held.header.tag, held.payload, &held.sent);
    moved = moved || whole || held.sent > before;
    if (!whole) break;
    held_.PopFront();
  }
  shm::Channel::Piece piece;
  size_t taken = 0;
  while (taken < kSharedGulpBytes && !posted_.empty() && channel_->Peek(&piece)) {
    moved = true;
    taken += piece.bytes.size() + kMessageBytes;
    RM_RETURN_IF_ERROR(ReceiveShared(piece));
  }
  shared_moved_ = shared_moved_ || moved;
  return moved;
}

FrameHeader Link::HeaderOf(const shm::Channel::Piece& piece) const {
  return {.type = FrameType::kData,
          .round = round_,
          .sequence = piece.sequence,
          .tag = piece.tag,
          .length = piece.length};
}

absl::Status Link::ReceiveShared(const shm::Channel::Piece& piece) {
  const Arrival& arrival = posted_.front();
  if (!shared_matched_) {
    const bool is_due =
        piece.sequence == sequence_ && piece.tag == tag_ && piece.length == arrival.size();
    if (!is_due) RM_RETURN_IF_ERROR(handler_->OnData(peer_, HeaderOf(piece), arrival.size()));
    shared_matched_ = true;
  }
  const size_t bytes = piece.bytes.size();
  if (!piece.sound || bytes > arrival.size() - shared_done_ ||
      arrival.WholeElements(bytes) != bytes) {
    return absl::DataLossError("what it put into shared memory is not a message");
  }
  arrival.Deliver(shared_done_, piece.bytes);
  channel_->Take();
  shared_done_ += bytes;
  if (shared_done_ < arrival.size()) return absl::OkStatus();
  bytes_received_ += arrival.size();
  posted_.PopFront();
  ++completed_;
  shared_done_ = 0;
  shared_matched_ = false;
  return absl::OkStatus();
}

bool Link::HasArrived() const {
  return path_ == Path::kSharedMemory && channel_->HasNext();
}

absl::Status Link::InspectShared() {
  shm::Channel::Piece piece;
  if (!posted_.empty() || !channel_->Peek(&piece)) return absl::OkStatus();
  return handler_->OnData(peer_, HeaderOf(piece), std::nullopt);
}

void Link::NoteShared(SteadyTime now) {
  if (!shared_moved_) return;
  shared_moved_ = false;
  last_heard_ = now;
  last_progress_ = now;
}

}  // namespace ringmaster::collectives::tcp
