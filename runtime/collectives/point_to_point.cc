// Send, Receive and SendReceive of a Communicator: operations of two ranks, or three in a row.
// Guarded, as saying what is wrong takes memory before they run.
#include <array>

#include <fmt/format.h>

#include "runtime/collectives/accelerator.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/note.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {
namespace {

// One frame at least, so that the receiver waits for the sender whatever the length.
void SendAll(Transport& transport, int to, std::span<const std::byte> bytes, size_t largest) {
  for (const Piece& piece : MessagesOf({0, bytes.size()}, largest))
    transport.PostSend(to, bytes.subspan(piece.offset, piece.count));
}

// Completed by Finish.
void ReceiveAll(Transport& transport, int from, std::span<std::byte> bytes, size_t largest) {
  for (const Piece& piece : MessagesOf({0, bytes.size()}, largest))
    transport.PostReceive(from, bytes.subspan(piece.offset, piece.count));
}

Operation Transfer(int from, int to, ConstElements data, std::string_view name,
                   std::string_view note) {
  Operation operation;
  operation.kind = OperationKind::kSend;
  operation.type = data.type();
  operation.count = data.count();
  operation.detail = static_cast<uint64_t>(from) << 32 | static_cast<uint64_t>(to);
  operation.name = name;
  operation.note = note;
  return operation;
}

std::string_view WriteFromTo(int from, int to, Note* note) {
  return note->Write("from rank {} to rank {}", from, to);
}

}  // namespace

absl::Status Communicator::CheckPeer(int peer, std::string_view name) const {
  if (peer >= 0 && peer < world() && peer != rank()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: rank {} is no other rank of a world of {}", name, peer, world()));
}

absl::Status Communicator::Send(int to, ConstElements data, std::string_view name) {
  return Guard(name, [&]() -> absl::Status {
    RM_RETURN_IF_ERROR(CheckPeer(to, name));
    Note memory;
    const std::string_view note = WriteFromTo(rank(), to, &memory);
    const Scope scope{.ranks = std::span(&to, 1)};
    return RunAmong(scope, Transfer(rank(), to, data, name, note), [&](Transport& t) {
      if (shared_->accelerator != nullptr)
        return shared_->accelerator->Run(t, {.sends = {{to, data.bytes()}}, .receives = {}});
      SendAll(t, to, data.bytes(), segment_bytes());
      return absl::OkStatus();
    });
  });
}

absl::Status Communicator::Receive(int from, Elements data, std::string_view name) {
  return Guard(name, [&]() -> absl::Status {
    RM_RETURN_IF_ERROR(CheckPeer(from, name));
    Note memory;
    const std::string_view note = WriteFromTo(from, rank(), &memory);
    const Scope scope{.ranks = std::span(&from, 1)};
    return RunAmong(scope, Transfer(from, rank(), data, name, note), [&](Transport& t) {
      if (shared_->accelerator != nullptr)
        return shared_->accelerator->Run(t, {.sends = {}, .receives = {{from, data.bytes()}}});
      ReceiveAll(t, from, data.bytes(), segment_bytes());
      return absl::OkStatus();
    });
  });
}

absl::Status Communicator::SendReceive(int to, ConstElements out, int from, Elements in,
                                       std::string_view name) {
  return Guard(name, [&]() -> absl::Status {
    RM_RETURN_IF_ERROR(CheckPeer(to, name));
    RM_RETURN_IF_ERROR(CheckPeer(from, name));
    if (out.type() != in.type()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: what is sent is of {}, what is received {}", name, NameOf(out.type()),
                      NameOf(in.type())));
    }
    const auto lengths = [&](int peer) {
      return HashOfExchange(rank(), peer, peer == to ? out.count() : kNoMessage,
                            peer == from ? in.count() : kNoMessage);
    };
    const AgreedWith by_peer = lengths;
    Note note;
    Operation operation;
    operation.kind = OperationKind::kSendReceive;
    operation.type = out.type();
    operation.name = name;
    operation.note =
        note.Write("this rank's {} to rank {}, {} from rank {}", out.count(), to, in.count(), from);
    operation.by_peer = &by_peer;
    const std::array<int, 2> peers = {to, from};
    const Scope scope{.ranks = peers};
    return RunAmong(scope, operation, [&](Transport& t) {
      if (shared_->accelerator != nullptr) {
        return shared_->accelerator->Run(
            t, {.sends = {{to, out.bytes()}}, .receives = {{from, in.bytes()}}});
      }
      ReceiveAll(t, from, in.bytes(), segment_bytes());
      SendAll(t, to, out.bytes(), segment_bytes());
      return absl::OkStatus();
    });
  });
}

}  // namespace ringmaster::collectives
