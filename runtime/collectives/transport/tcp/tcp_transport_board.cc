// What a TcpTransport sends to several ranks that share memory with it: written once, to a board
// that they have mapped, as far as there is room at once; the rest goes to each by itself.
#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/log.h"
#include "runtime/collectives/transport/shm/board.h"
#include "runtime/collectives/transport/tcp/tcp_transport.h"

namespace ringmaster::collectives::tcp {
namespace {

// Fewer are written into the slots of each, or beside them, as soon as the board has them.
constexpr size_t kLeastBytes = 1024;

}  // namespace

const shm::Board* TcpTransport::OwnBoard() {
  constexpr int kLeastWorld = 3;
  if (world() < kLeastWorld || std::exchange(tried_board_, true)) return board_.get();
  absl::StatusOr<std::unique_ptr<shm::Board>> board = shm::Board::Make();
  if (board.ok()) {
    board_ = *std::move(board);
  } else {
    log::Info("what is for all ranks of this machine is written for each of them",
              {{"because", Message(board.status())}});
  }
  return board_.get();
}

void TcpTransport::UnlinkBoard() {
  if (board_ == nullptr || !board_->has_name()) return;
  const bool all = std::ranges::all_of(peers_, [](const auto& p) {
    if (p == nullptr || p->link.path() == Path::kTcp) return true;
    return p->link.path() == Path::kSharedMemory &&
           p->link.channel().TheirUseOfBoard() != shm::BoardUse::kUnknown;
  });
  if (all) board_->Unlink();
}

bool TcpTransport::PostSendToEach(std::span<const int> peers, std::span<const std::byte> bytes) {
  if (board_ == nullptr || bytes.size() < kLeastBytes)
    return Transport::PostSendToEach(peers, bytes);
  readers_.clear();
  for (const int rank : peers) {
    if (rank == membership_.rank) continue;
    RM_CHECK(rank >= 0 && rank < world() && peer(rank).takes_part, "a send to nobody");
    if (peer(rank).link.MaySendOnBoard()) readers_.push_back(rank);
  }
  const size_t sent = readers_.size() > 1 ? WriteOnBoard(bytes) : 0;
  auto reader = sent > 0 ? readers_.begin() : readers_.end();
  bool copied = true;
  for (const int rank : peers) {
    if (rank == membership_.rank) continue;
    const bool has_begun = reader != readers_.end() && rank == *reader;
    if (has_begun) ++reader;
    const bool at_once =
        has_begun ? peer(rank).link.QueueShared(bytes, sent) : PostSend(rank, bytes);
    copied = at_once && copied;
  }
  return copied;
}

size_t TcpTransport::WriteOnBoard(std::span<const std::byte> message) {
  // Who has left reads nothing any more.
  const auto oldest_held = [this] {
    shm::BoardPlace oldest = shm::kHoldsNothing;
    for (const int rank : sharing_) {
      const Link& link = peer(rank).link;
      if (!link.left()) oldest = std::min(oldest, link.channel().HeldOnBoard());
    }
    return oldest;
  };
  const auto may_send = [this](int rank) { return peer(rank).link.MaySendOnBoard(); };
  for (const int rank : readers_) TellOperation(rank);
  size_t sent = 0;
  while (sent < message.size() && std::ranges::all_of(readers_, may_send)) {
    const auto piece = message.subspan(sent, std::min(shm::kMaxPiece, message.size() - sent));
    const std::optional<shm::BoardPlace> place = board_->Write(piece, oldest_held);
    if (!place) break;
    for (const int rank : readers_)
      peer(rank).link.SendOnBoard(message.size(), *place, piece.size());
    sent += piece.size();
  }
  return sent;
}

}  // namespace ringmaster::collectives::tcp
