// How two ranks settle whether their data goes through shared memory: see frame.h. The rank that
// accepted the connection makes the memory, the one that dialed maps it, and its name is gone as
// soon as it has.
#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "common/log.h"
#include "runtime/collectives/transport/tcp/tcp_transport.h"

namespace ringmaster::collectives::tcp {
namespace {

// Who writes to a ring wants lines that its reader's own cache has let go of: until then they have
// to be taken from there, one by one. So a ring is larger than that cache (two ranks sum 64 KB to
// 4 MB in half the time that a ring of 512 KB takes, where a processor has 1 MB of its own), and
// small enough for the cache that processors share; all rings of a rank together are bounded.
constexpr size_t kRingBytes = 2 * 1024 * 1024;
constexpr size_t kLeastRingBytes = 64 * 1024;
constexpr size_t kRingBytesOfARank = 2 * 1024 * 1024;

bool IsRing(uint64_t bytes) {
  return std::has_single_bit(bytes) && bytes >= shm::Channel::kMinRing && bytes < size_t{1} << 40;
}

}  // namespace

size_t TcpTransport::RingBytes() const {
  if (shared_options_.ring_bytes != 0) return shared_options_.ring_bytes;
  const size_t share = std::bit_floor(kRingBytesOfARank / static_cast<size_t>(world() - 1));
  return std::clamp(share, kLeastRingBytes, kRingBytes);
}

void TcpTransport::Offer(int rank) {
  const bool tcp = shared_options_.choice == TransportChoice::kTcp;
  peer(rank).link.QueueControl(Header(FrameType::kOffer), tcp ? "" : shm::MachineId());
}

// A single message may be sent long before its receiver asks for it, and only a rank inside an
// operation answers an offer.
void TcpTransport::WithdrawOffers() {
  if (operation_.kind != OperationKind::kSend ||
      shared_options_.choice == TransportChoice::kSharedMemory)
    return;
  for (int rank = membership_.rank + 1; rank < world(); ++rank) {
    Peer& p = peer(rank);
    if (!p.link.attached() || p.link.path() != Path::kUnsettled || !p.link.has_held()) continue;
    p.withdrew = true;
    // Not an error: the choice is not shared memory alone.
    Decline(rank, fmt::format("{} was not there to settle it", Describe(rank))).IgnoreError();
  }
}

absl::Status TcpTransport::OnPath(int rank, const FrameHeader& header, const std::string& text) {
  Peer& p = peer(rank);
  if (std::exchange(p.withdrew, false)) return absl::OkStatus();
  // The offer was withdrawn while this rank declined it.
  if (header.type == FrameType::kDecline && p.link.path() == Path::kTcp) return absl::OkStatus();
  if (p.link.path() != Path::kUnsettled)
    return absl::DataLossError("settles the path of its data twice");
  RM_RETURN_IF_ERROR(Answer(rank, header, text));
  // At once: the operation may be over when this rank's data is in the memory, and the peer cannot
  // look there before it has the answer.
  return p.link.Write(std::chrono::steady_clock::now());
}

absl::Status TcpTransport::Answer(int rank, const FrameHeader& header, const std::string& text) {
  Peer& p = peer(rank);
  switch (header.type) {
    case FrameType::kOffer:
      return OnOffer(rank, text);
    case FrameType::kSegment:
      return OnSegment(rank, header, text);
    case FrameType::kAccept:
      if (p.proposed == nullptr) return absl::DataLossError("accepts memory that was not proposed");
      SettleOnSharedMemory(rank, std::move(p.proposed));
      return absl::OkStatus();
    default:
      p.proposed.reset();
      return SettleOnTcp(rank, text);
  }
}

absl::Status TcpTransport::OnOffer(int rank, const std::string& machine) {
  if (shared_options_.choice == TransportChoice::kTcp)
    return Decline(rank, fmt::format("{} is set to TCP", Describe(membership_.rank)));
  if (machine.empty()) return Decline(rank, fmt::format("{} is set to TCP", Describe(rank)));
  if (machine != shm::MachineId())
    return Decline(rank, "the two are on different machines, or in different network namespaces");
  const size_t ring = RingBytes();
  const shm::Board* const board = OwnBoard();
  auto segment = shm::Segment::Make(shm::Channel::SegmentBytes(ring));
  if (!segment.ok()) {
    std::string why(Message(segment.status()));
    if (absl::IsResourceExhausted(segment.status())) {
      const auto ranks = static_cast<size_t>(world());
      const size_t all = shm::Channel::SegmentBytes(ring) * (ranks * (ranks - 1) / 2) +
                         (board == nullptr ? 0 : ranks * board->size());
      why += fmt::format(
          ": mount an emptyDir volume of medium Memory there, with at least {} MiB for the {} "
          "ranks",
          (all >> 20) + 1, ranks);
    }
    if (shared_options_.choice == TransportChoice::kAuto) {
      log::Warning("no shared memory with a rank of the same machine: its data goes over TCP",
                   {{"peer", Describe(rank)}, {"because", why}});
    }
    return Decline(rank, why);
  }
  FrameHeader header = Header(FrameType::kSegment);
  header.tag = ring;
  peer(rank).link.QueueControl(header, (*segment)->name());
  peer(rank).proposed =
      std::make_unique<shm::Channel>(*std::move(segment), ring, /*side=*/1, processors_, board);
  return absl::OkStatus();
}

absl::Status TcpTransport::OnSegment(int rank, const FrameHeader& header, const std::string& name) {
  if (!IsRing(header.tag)) return absl::DataLossError("proposes shared memory of no size");
  auto segment = shm::Segment::Open(name, shm::Channel::SegmentBytes(header.tag));
  // Two containers of one machine that do not share their /dev/shm.
  if (!segment.ok()) return Decline(rank, Message(segment.status()));
  peer(rank).link.QueueControl(Header(FrameType::kAccept), "");
  SettleOnSharedMemory(rank, std::make_unique<shm::Channel>(*std::move(segment), header.tag,
                                                            /*side=*/0, processors_, OwnBoard()));
  return absl::OkStatus();
}

absl::Status TcpTransport::Decline(int rank, const std::string& why) {
  peer(rank).link.QueueControl(Header(FrameType::kDecline), why);
  return SettleOnTcp(rank, why);
}

absl::Status TcpTransport::SettleOnTcp(int rank, const std::string& why) {
  if (shared_options_.choice == TransportChoice::kSharedMemory) {
    return absl::FailedPreconditionError(fmt::format(
        "shares no memory with this rank, whose transport is set to shared memory: {}", why));
  }
  Peer& p = peer(rank);
  p.link.UseTcp();
  connected_.push_back(rank);
  may_spin_ = MaySpin();
  if (p.link.has_held()) TellOperation(rank);
  p.link.ReleaseHeld();
  if (waits_long_ && p.link.has_posted()) TellWaiting(rank);
  return absl::OkStatus();
}

void TcpTransport::SettleOnSharedMemory(int rank, std::unique_ptr<shm::Channel> channel) {
  Peer& p = peer(rank);
  channel->segment().Unlink();
  channel->ReadTheirBoard();
  p.link.UseSharedMemory(std::move(channel), round());
  sharing_.push_back(rank);
  may_spin_ = MaySpin();
  if (p.link.has_held()) TellOperation(rank);
  if (waits_long_ && p.link.has_posted()) TellWaiting(rank);
}

// Ranks of the same address are on this machine, whether this one shares memory with them or not.
bool TcpTransport::MaySpin() const {
  const auto host_of = [&](const Member& member) {
    return std::string_view(member.address).substr(0, member.address.rfind(':'));
  };
  const std::string_view host = host_of(membership_.members[rank()]);
  std::vector<shm::Processors> known;
  size_t unknown = 0;
  for (int other = 0; other < world(); ++other) {
    if (other == rank()) continue;
    const Peer& p = *peers_[other];
    if (p.link.path() == Path::kSharedMemory) {
      known.push_back(p.link.channel().TheirProcessors());
    } else if (host_of(membership_.members[other]) == host) {
      ++unknown;
    }
  }
  return shm::MayKeepOne(processors_, known, unknown);
}

}  // namespace ringmaster::collectives::tcp
