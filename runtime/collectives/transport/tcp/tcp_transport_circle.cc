// How ranks find out that they wait for one another in a circle in which no two disagree: rank 0
// in a group with 1 for 1, which is in one with 2 for 2, which is in one with 0 for 0.
//
// A rank that has waited for long asks everybody it is connected to: "do you wait for me?"
// (kCircle). Who does, for a message that has not come, passes the question on to everybody as its
// own, with what it is in; who does not, drops it. If it comes back to who asked, from the very
// rank that that one waits for and in the same wait, they are a circle. (K. M. Chandy, J. Misra and
// L. M. Haas, "Distributed deadlock detection", 1983, backwards along the edges: what a rank has
// sent to one that does not read it yet cannot hold up what comes the other way.)
//
// It is never found where there is none. A rank that waits posts nothing, so whoever got the
// question from it after all of its data gets nothing more from it until its wait ends; and its
// wait ends only with a message of the rank from which the question came. So from the last of the
// circle back, each was in its wait since it passed the question on, and who asked has been in its
// since it did. Waits for room to send are not seen; those end after three time-outs.
#include <chrono>

#include <fmt/format.h>

#include "runtime/collectives/transport/tcp/tcp_transport.h"

namespace ringmaster::collectives::tcp {
namespace {

// Long after two ranks that disagree would have found out (kLongWait).
constexpr std::chrono::milliseconds kFirstQuestion{100};

}  // namespace

// Whether this wait cannot end before a message of `rank` comes that is not here yet.
bool TcpTransport::WaitsFor(int rank) {
  Link& link = peer(rank).link;
  const bool due = awaited_.peer < 0
                       ? link.has_posted()
                       : awaited_.peer == rank && link.completed_receives() < awaited_.number;
  return due && !link.HasArrived();
}

void TcpTransport::PlanQuestion(SteadyTime now) {
  if (planned_in_ == waits_) return;
  planned_in_ = waits_;
  next_question_ = now + kFirstQuestion;
}

void TcpTransport::AskAround(SteadyTime now) {
  if (now < next_question_) return;
  next_question_ = now + AlivePeriod();
  asked_in_ = waits_;
  PassOn(rank(), ++questions_, "");
}

void TcpTransport::PassOn(int origin, uint64_t question, const std::string& path) {
  FrameHeader header = Header(FrameType::kCircle);
  header.sequence = question;
  header.tag = static_cast<uint64_t>(origin);
  for (const auto& p : peers_) {
    // What is still to be sent may be what the peer waits for.
    if (p == nullptr || !p->link.attached() || p->link.left() || p->link.has_sends()) continue;
    p->link.QueueControl(header, path);
  }
}

absl::Status TcpTransport::OnCircle(int from, const FrameHeader& header, const std::string& path) {
  if (header.tag >= static_cast<uint64_t>(world()))
    return absl::DataLossError("asks on behalf of a rank that there is not");
  const int origin = static_cast<int>(header.tag);
  if (!WaitsFor(from)) return absl::OkStatus();
  const std::string longer =
      fmt::format("{} waits for rank {} in operation {} of the two, {}{}{}", Describe(rank()), from,
                  peer(from).begun, DescribeOperation(), path.empty() ? "" : "; ", path);
  if (origin != rank()) {
    uint64_t& last = peer(origin).question;
    if (header.sequence > last) PassOn(origin, last = header.sequence, longer);
    return absl::OkStatus();
  }
  if (header.sequence != questions_ || asked_in_ != waits_) return absl::OkStatus();
  const Failure cause = {
      absl::FailedPreconditionError(fmt::format("ranks wait for one another in a circle, so every "
                                                "rank must make the calls of all its groups in one "
                                                "order: {}",
                                                longer)),
      from};
  RecordFailure(cause);
  return cause.status;
}

// Who looks waits for none of its peers, and so is part of no circle of ranks that do.
absl::Status TcpTransport::Look(bool progress) {
  awaited_.peer = membership_.rank;
  ++waits_;
  if (progress) elsewhere_ = std::chrono::steady_clock::now();
  RM_RETURN_IF_ERROR(MoveShared().status());
  RingBells();
  if (const Failure failed = failure(); !failed.status.ok()) return Fail(failed);
  return Poll(/*may_sleep=*/false);
}

}  // namespace ringmaster::collectives::tcp
