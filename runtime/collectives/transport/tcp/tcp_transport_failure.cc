// How a TcpTransport notices that a round is over, and names the cause.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "runtime/collectives/transport/tcp/tcp_transport.h"

namespace ringmaster::collectives::tcp {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kAlivesPerTimeout = 4;
constexpr milliseconds kShortestAlivePeriod{5};
constexpr int kStallTimeouts = 3;
constexpr milliseconds kLongestAge = std::chrono::hours(24);
// How long a rank whose peer is gone listens for why; part of the 100 ms that Abort may take.
constexpr milliseconds kListening{30};

double Seconds(steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

absl::Status TcpTransport::CheckRound(const FrameHeader& header) const {
  if (header.round == membership_.round) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("sent a frame of round {} in round {}", header.round, round()));
}

absl::Status TcpTransport::OnControl(int rank, const FrameHeader& header, const std::string& text) {
  RM_RETURN_IF_ERROR(CheckRound(header));
  switch (header.type) {
    case FrameType::kAbort: {
      // The cause goes on as it came: who reports it does not matter, who is to blame stands in it.
      Failure cause = AbortedBy(header.tag, text);
      if (cause.suspect >= world()) cause.suspect = -1;
      RecordFailure(cause);
      return cause.status;
    }
    case FrameType::kOperation:
      peer(rank).sequence = header.sequence;
      peer(rank).tag = header.tag;
      peer(rank).operation = text;
      return CheckAgreement(rank, header.sequence, header.tag);
    case FrameType::kAlive: {
      const SteadyTime now = steady_clock::now();
      const auto age = milliseconds(std::min<uint64_t>(header.tag, kLongestAge.count()));
      peer(rank).progress = std::max(peer(rank).progress, now - age);
      return absl::OkStatus();
    }
    case FrameType::kCircle:
      return OnCircle(rank, header, text);
    case FrameType::kOffer:
    case FrameType::kSegment:
    case FrameType::kAccept:
    case FrameType::kDecline:
      return OnPath(rank, header, text);
    default:
      return absl::OkStatus();  // kGoodbye, kBell: that it came is all
  }
}

absl::Status TcpTransport::OnData(int rank, const FrameHeader& header,
                                  std::optional<size_t> expected) {
  RM_RETURN_IF_ERROR(CheckRound(header));
  RM_RETURN_IF_ERROR(CheckAgreement(rank, header.sequence, header.tag));
  const Peer& p = peer(rank);
  const uint64_t oldest = p.takes_part ? p.begun : p.begun + 1;  // that may still send data
  const bool out_of_step = expected ? header.sequence != p.begun : header.sequence < oldest;
  if (out_of_step) return Diverged(rank, header.sequence);
  if (expected && *expected != header.length) {
    return absl::DataLossError(fmt::format("sent {} bytes where {} were due, in {}", header.length,
                                           *expected, DescribeOperation()));
  }
  return absl::OkStatus();
}

// In memory that is kept, for over TCP each operation is described to each peer.
const std::string& TcpTransport::DescribeOperation() {
  description_.clear();
  operation_.DescribeTo(&description_);
  if (!group_name_.empty())
    fmt::format_to(std::back_inserter(description_), ", in group \"{}\"", group_name_);
  return description_;
}

absl::Status TcpTransport::CheckAgreement(int rank, uint64_t sequence, uint64_t tag) {
  Peer& p = peer(rank);
  const bool differs = sequence > 0 && p.remembers(sequence) && tag != p.tag_of(sequence);
  return differs ? Diverged(rank, sequence) : absl::OkStatus();
}

absl::Status TcpTransport::Diverged(int rank, uint64_t sequence) {
  Peer& p = peer(rank);
  if (p.link.path() == Path::kSharedMemory && sequence != p.sequence)
    p.operation = p.link.channel().TheirDescription(sequence);
  const std::string here =
      p.takes_part
          ? fmt::format("is in operation {}, {}", p.begun, DescribeOperation())
          : fmt::format("is past operation {} of theirs, in {}", p.begun, DescribeOperation());
  const Failure cause = {
      absl::FailedPreconditionError(fmt::format("{} is in operation {}, {}, while {} {}: every "
                                                "rank must make the same calls in the same order",
                                                Describe(rank), sequence, p.operation,
                                                Describe(membership_.rank), here)),
      rank};
  RecordFailure(cause);
  return cause.status;
}

// A rank that was told why the round ends tells it on and leaves, and where its words did not get
// through only the end of its connection is seen: then another may have told the cause, or `ended`
// itself, to which this rank did not listen, has dialed to.
void TcpTransport::ListenForCause(int ended) {
  const bool may_dial = peer(ended).link.held_back();
  const SteadyTime deadline = steady_clock::now() + kListening;
  for (SteadyTime now = steady_clock::now(); now < deadline; now = steady_clock::now()) {
    AdoptArrivals(now);
    HearLastWords(now);
    polled_.assign({{wake_.fd(), POLLIN, 0}});
    bool more = false;  // to be read, of which no event tells
    for (const auto& p : peers_) {
      if (p != nullptr && p->last_words != nullptr)
        polled_.push_back({p->last_words->fd(), POLLIN, 0});
      if (p == nullptr || !p->link.attached() || p->link.left()) continue;
      absl::Status status = p->link.Read(now);
      if (status.ok() && p->link.held_back()) status = p->link.ReadAhead(now);
      // One that is broken has nothing to tell; what else it is accused of is a cause, too.
      if (!status.ok()) continue;
      if ((p->link.interest(/*reads_ahead=*/true) & POLLIN) != 0)
        polled_.push_back({p->link.fd(), POLLIN, 0});
      more = more || p->link.unblocked();
    }
    const bool hears_nobody = polled_.size() == 1 && !may_dial;
    if (failed_.load(std::memory_order_acquire) || hears_nobody) return;
    const auto left = std::chrono::ceil<milliseconds>(deadline - now).count();
    poll(polled_.data(), polled_.size(), more ? 0 : static_cast<int>(left));
    if (polled_.front().revents != 0) wake_.Drain();
  }
}

absl::Status TcpTransport::Blame(int rank, const absl::Status& what) {
  if (absl::IsUnavailable(what)) ListenForCause(rank);
  const std::string message = fmt::format("{} {} (in operation {}, {})", Describe(rank),
                                          Message(what), peer(rank).begun, DescribeOperation());
  // An error that was recorded with its own words where it was found stays as it is.
  return Fail({absl::Status(what.code(), message), rank});
}

std::chrono::milliseconds TcpTransport::AlivePeriod() const {
  return std::max(timeouts_.operation / kAlivesPerTimeout, kShortestAlivePeriod);
}

// For peers that hear nothing from this rank in this operation but are waited for. Not at once: in
// the good case what they owe arrives sooner, and such a frame would have been for nothing.
void TcpTransport::AnnounceWaiting(SteadyTime now) {
  if (waits_long_ || now < begun_ + kLongWait) return;
  waits_long_ = true;
  for (int rank = 0; rank < world(); ++rank) {
    if (rank != membership_.rank && peer(rank).link.has_posted()) TellWaiting(rank);
  }
}

void TcpTransport::SayAlive(SteadyTime now) {
  if (now < next_alive_) return;
  next_alive_ = now + AlivePeriod();
  FrameHeader header = Header(FrameType::kAlive);
  header.tag = static_cast<uint64_t>(
      std::chrono::duration_cast<milliseconds>(now - LatestProgress()).count());
  for (const auto& p : peers_) {
    // Where data is queued it says the same, or the peer does not read.
    if (p == nullptr || !p->link.attached() || p->link.left() || p->link.has_queued()) continue;
    p->link.QueueControl(header, "");
  }
}

SteadyTime TcpTransport::LastMove() const {
  SteadyTime last = begun_;
  for (const auto& p : peers_) {
    if (p != nullptr) last = std::max(last, p->link.last_progress());
  }
  return last;
}

SteadyTime TcpTransport::LatestProgress() const {
  SteadyTime latest = std::max(LastMove(), elsewhere_);
  for (const auto& p : peers_) {
    if (p != nullptr && p->link.has_work()) latest = std::max(latest, p->progress);
  }
  return latest;
}

absl::Status TcpTransport::CheckPatience(SteadyTime now) {
  int waited_for = -1;
  for (int rank = 0; rank < world(); ++rank) {
    if (rank == membership_.rank) continue;
    const Peer& p = peer(rank);
    if (!p.link.has_work()) continue;
    // Connecting has its own time, which may be longer than any stall.
    if (!p.link.attached()) elsewhere_ = now;
    if (p.dialer != nullptr) continue;
    waited_for = rank;
    // Whatever it says waits behind data that it sent early, unless that is read ahead.
    if (p.link.held_back() && (now < reads_ahead_from_ || !p.link.may_read_ahead())) continue;
    const auto silence = now - std::max(begun_, p.link.last_heard());
    // One that has yet to connect is not in the round, or is at work before it comes to this rank.
    const milliseconds patience =
        p.link.attached() ? timeouts_.operation : std::max(timeouts_.connect, timeouts_.operation);
    if (silence < patience) continue;
    const char* what = p.link.attached() ? "has been silent" : "has not connected";
    return Blame(
        rank, absl::DeadlineExceededError(fmt::format("{} for {:.1f} s", what, Seconds(silence))));
  }
  if (waited_for < 0) return absl::OkStatus();
  const auto stalled = now - LatestProgress();
  if (stalled < kStallTimeouts * timeouts_.operation) return absl::OkStatus();
  return Blame(waited_for,
               absl::DeadlineExceededError(fmt::format(
                   "waits like this rank, and no data has moved for {:.1f} s; what it "
                   "last said it is in is operation {} of the two, {}",
                   Seconds(stalled), peer(waited_for).sequence, peer(waited_for).operation)));
}

bool TcpTransport::RecordFailure(Failure failure) {
  const std::lock_guard lock(mutex_);
  if (!failure_.status.ok()) return false;
  failure_ = std::move(failure);
  failed_.store(true, std::memory_order_seq_cst);
  return true;
}

Failure TcpTransport::failure() const {
  if (!has_failed()) return {};
  const std::lock_guard lock(mutex_);
  return failure_;
}

absl::Status TcpTransport::Fail(Failure failure) {
  RecordFailure(std::move(failure));
  TellPeers();
  return this->failure().status;
}

absl::Status TcpTransport::Abandon(Failure failure) {
  for (const auto& p : peers_) {
    if (p != nullptr) p->link.Abandon();
  }
  return Fail(std::move(failure));
}

void TcpTransport::Abort(Failure failure) {
  if (RecordFailure(std::move(failure))) wake_.Signal();
}

}  // namespace ringmaster::collectives::tcp
