#include "runtime/collectives/transport/mpi/mpi_transport.h"

#include <algorithm>
#include <limits>
#include <sched.h>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"

namespace ringmaster::collectives::mpi {
namespace {

constexpr int kAliveTag = 1;
constexpr int kFailedTag = 2;
constexpr int kFirstDataTag = 16;
// So many timeouts without a byte anywhere, where ranks wait for one another, are the end.
constexpr int kStallTimeouts = 3;

absl::Status Check(int code, const char* call) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return absl::InternalError(fmt::format("{}: {}", call, text));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MpiTransport>> MpiTransport::Create(
    MPI_Comm group, uint64_t round, std::chrono::milliseconds timeout) {
  if (timeout.count() <= 0) return absl::InvalidArgumentError("timeout must be positive");
  int ready = 0;
  int level = 0;
  MPI_Initialized(&ready);
  if (ready) MPI_Query_thread(&level);
  if (!ready || level < MPI_THREAD_SERIALIZED) {
    return absl::FailedPreconditionError(
        "MPI must be initialised with MPI_Init_thread and MPI_THREAD_SERIALIZED");
  }
  std::unique_ptr<MpiTransport> t(new MpiTransport(round, timeout));
  RM_RETURN_IF_ERROR(Check(MPI_Comm_dup(group, &t->data_), "MPI_Comm_dup"));
  RM_RETURN_IF_ERROR(Check(MPI_Comm_dup(group, &t->news_), "MPI_Comm_dup"));
  // Errors come back to us instead of ending the job.
  MPI_Comm_set_errhandler(t->data_, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(t->news_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(t->data_, &t->rank_);
  MPI_Comm_size(t->data_, &t->world_);
  int* largest = nullptr;
  int known = 0;
  MPI_Comm_get_attr(t->data_, MPI_TAG_UB, &largest, &known);
  t->largest_tag_ = known ? *largest : 32767;  // the least that the standard promises
  t->peers_.resize(static_cast<size_t>(t->world_));
  return t;
}

MpiTransport::~MpiTransport() {
  (void)ReadNews(Clock::now());  // of a failure while this rank was in no operation
  if (failed_) return;           // peers may never come to free theirs
  if (data_ != MPI_COMM_NULL) MPI_Comm_free(&data_);
  if (news_ != MPI_COMM_NULL) MPI_Comm_free(&news_);
}

int MpiTransport::TagOf(const Scope& scope, uint64_t number) const {
  const uint64_t parts[] = {operation_.Hash(), scope.group, number};
  const auto range = static_cast<uint64_t>(largest_tag_ - kFirstDataTag);
  return kFirstDataTag + static_cast<int>(Digest(parts, sizeof(parts)) % range);
}

absl::Status MpiTransport::Begin(const Operation& operation, const Scope& scope) {
  if (failed_) return failure().status;
  operation_ = operation;
  operation_name_ = operation.name;
  operation_.name = operation_name_;
  operation_note_ = operation.note;
  operation_.note = operation_note_;
  operation_.by_peer = nullptr;
  wrong_call_.reset();
  const auto now = Clock::now();
  const auto join = [&](int rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    peer.tag = TagOf(scope, ++peer.begun);
    peer.posted = peer.complete = 0;
    peer.heard = peer.progress = now;
  };
  moved_ = now;
  if (scope.ranks.empty()) {
    for (int rank = 0; rank < world_; ++rank) join(rank);
  } else {
    for (const int rank : scope.ranks) join(rank);
  }
  next_alive_ = now + timeout_ / 4;
  return absl::OkStatus();
}

bool MpiTransport::PostSend(int peer, std::span<const std::byte> bytes) {
  if (wrong_call_) return false;
  if (bytes.size() > std::numeric_limits<int>::max()) {
    wrong_call_ = absl::InvalidArgumentError(fmt::format(
        "a message of {} bytes; MPI takes up to 2 GiB: lower segment_bytes", bytes.size()));
    return false;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  const absl::Status sent =
      Check(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, peer,
                      peers_[static_cast<size_t>(peer)].tag, data_, &request),
            "MPI_Isend");
  if (!sent.ok()) {
    wrong_call_ = sent;
    return false;
  }
  sends_.push_back({request, peer});
  ++peers_[static_cast<size_t>(peer)].sending;
  traffic_.bytes_sent += bytes.size();
  return false;
}

Receipt MpiTransport::Post(int peer, const Arrival& arrival) {
  Peer& from = peers_[static_cast<size_t>(peer)];
  from.expected.push_back(arrival);
  return {peer, ++from.posted};
}

Receipt MpiTransport::PostReceive(int peer, std::span<std::byte> bytes) {
  return Post(peer, Arrival(bytes));
}

Receipt MpiTransport::PostCombine(int peer, const Combining& combining) {
  return Post(peer, Arrival(combining));
}

absl::Status MpiTransport::Wait(Receipt receipt) {
  const Peer& from = peers_[static_cast<size_t>(receipt.peer)];
  return Progress([&] { return from.complete >= receipt.number; });
}

absl::Status MpiTransport::Finish() {
  return Progress([&] {
    return sends_.empty() &&
           std::ranges::all_of(peers_, [](const Peer& p) { return p.complete == p.posted; });
  });
}

template <typename Done>
absl::Status MpiTransport::Progress(Done done) {
  while (true) {
    RM_ASSIGN_OR_RETURN(const bool moved, Move());
    if (done()) return absl::OkStatus();
    const auto now = Clock::now();
    if (moved) {
      moved_ = now;
      continue;
    }
    RM_RETURN_IF_ERROR(Attend(now));
    sched_yield();  // the peer may need this core
  }
}

absl::Status MpiTransport::Look(bool progress) {
  RM_ASSIGN_OR_RETURN(const bool moved, Move());
  const auto now = Clock::now();
  if (moved || progress) moved_ = now;
  return Attend(now);
}

absl::StatusOr<bool> MpiTransport::Move() {
  if (failed_) return failure().status;
  if (wrong_call_) return Record({*wrong_call_, -1});
  RM_ASSIGN_OR_RETURN(bool moved, ReapSends());
  for (int rank = 0; rank < world_; ++rank) {
    RM_ASSIGN_OR_RETURN(const bool received, Receive(rank));
    moved = moved || received;
  }
  return moved;
}

absl::Status MpiTransport::Attend(Clock::time_point now) {
  RM_RETURN_IF_ERROR(ReadNews(now));
  RM_RETURN_IF_ERROR(CheckPatience(now));
  SayAlive(now);
  return absl::OkStatus();
}

absl::StatusOr<bool> MpiTransport::ReapSends() {
  bool moved = false;
  for (size_t i = 0; i < sends_.size();) {
    int over = 0;
    const absl::Status tested =
        Check(MPI_Test(&sends_[i].request, &over, MPI_STATUS_IGNORE), "MPI_Test");
    if (!tested.ok()) return Record({tested, -1});
    if (!over) {
      ++i;
      continue;
    }
    --peers_[static_cast<size_t>(sends_[i].peer)].sending;
    sends_[i] = sends_.back();
    sends_.pop_back();
    moved = true;
  }
  return moved;
}

absl::StatusOr<bool> MpiTransport::Receive(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (peer.expected.empty()) return false;
  if (peer.arriving == MPI_REQUEST_NULL) {
    int there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    const absl::Status probed =
        Check(MPI_Improbe(rank, MPI_ANY_TAG, data_, &there, &message, &status), "MPI_Improbe");
    if (!probed.ok()) return Record({probed, rank});
    if (!there) return false;
    RM_RETURN_IF_ERROR(Match(rank, &message, status));
  }
  int over = 0;
  const absl::Status tested = Check(MPI_Test(&peer.arriving, &over, MPI_STATUS_IGNORE), "MPI_Test");
  if (!tested.ok()) return Record({tested, rank});
  if (!over) return false;
  const Arrival& arrival = peer.expected.front();
  if (arrival.combines()) arrival.Deliver(0, {peer.scratch.data(), arrival.size()});
  traffic_.bytes_received += arrival.size();
  peer.expected.pop_front();
  ++peer.complete;
  peer.heard = Clock::now();
  return true;
}

// The message must be of this operation, and as long as what waits for it.
absl::Status MpiTransport::Match(int rank, MPI_Message* message, const MPI_Status& status) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  const Arrival& arrival = peer.expected.front();
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  if (status.MPI_TAG != peer.tag) {
    return Record(
        {absl::FailedPreconditionError(fmt::format(
             "rank {} has diverged: it is in another operation than rank {}, which is in {}", rank,
             rank_, operation_.Describe())),
         rank});
  }
  if (static_cast<size_t>(bytes) != arrival.size()) {
    return Record({absl::DataLossError(
                       fmt::format("rank {} sent {} bytes where rank {} expects {}, in {}", rank,
                                   bytes, rank_, arrival.size(), operation_.Describe())),
                   rank});
  }
  std::byte* into = arrival.into().data();
  if (arrival.combines()) {
    if (peer.scratch.size() < arrival.size()) peer.scratch.resize(arrival.size());
    into = peer.scratch.data();
  }
  const absl::Status started =
      Check(MPI_Imrecv(into, bytes, MPI_BYTE, message, &peer.arriving), "MPI_Imrecv");
  return started.ok() ? started : Record({started, rank});
}

absl::Status MpiTransport::ReadNews(Clock::time_point now) {
  while (true) {
    int there = 0;
    MPI_Status status;
    const absl::Status probed =
        Check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, news_, &there, &status), "MPI_Iprobe");
    if (!probed.ok()) return Record({probed, -1});
    if (!there) return absl::OkStatus();
    int bytes = 0;
    MPI_Get_count(&status, MPI_CHAR, &bytes);
    std::string text(static_cast<size_t>(bytes), '\0');
    MPI_Recv(text.data(), bytes, MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG, news_,
             MPI_STATUS_IGNORE);
    Peer& peer = peers_[static_cast<size_t>(status.MPI_SOURCE)];
    peer.heard = now;
    if (status.MPI_TAG == kAliveTag && text.size() == sizeof(age_)) {
      int64_t age = 0;
      text.copy(reinterpret_cast<char*>(&age), sizeof(age));
      peer.progress = std::max(peer.progress, now - std::chrono::milliseconds(age));
      continue;
    }
    if (status.MPI_TAG != kFailedTag || text.size() < 2 * sizeof(int)) continue;
    // What failed there, whom that rank blames, and in words.
    int figures[2];
    text.copy(reinterpret_cast<char*>(figures), sizeof(figures));
    return Record(
        {absl::Status(static_cast<absl::StatusCode>(figures[0]),
                      fmt::format("rank {}: {}; rank {} is in {}", status.MPI_SOURCE,
                                  text.substr(sizeof(figures)), rank_, operation_.Describe())),
         figures[1]});
  }
}

absl::Status MpiTransport::CheckPatience(Clock::time_point now) {
  int waited_for = -1;
  for (int rank = 0; rank < world_; ++rank) {
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    if (!peer.waited_for()) continue;
    waited_for = rank;
    if (now - peer.heard < timeout_) continue;
    return Record({absl::DeadlineExceededError(
                       fmt::format("rank {} was silent for {} ms while rank {} waited for it in {}",
                                   rank, timeout_.count(), rank_, operation_.Describe())),
                   rank});
  }
  if (waited_for < 0 || now - LatestProgress() < kStallTimeouts * timeout_) return absl::OkStatus();
  return Record(
      {absl::DeadlineExceededError(fmt::format(
           "rank {} waits like rank {}, and no data has moved for {} ms, in {}", waited_for, rank_,
           (kStallTimeouts * timeout_).count(), operation_.Describe())),
       waited_for});
}

MpiTransport::Clock::time_point MpiTransport::LatestProgress() const {
  Clock::time_point latest = moved_;
  for (const Peer& peer : peers_) {
    if (peer.waited_for()) latest = std::max(latest, peer.progress);
  }
  return latest;
}

// Four times per timeout, so that whoever waits for this rank knows that it waits itself, and since
// when for nothing. Where a peer has not taken the last ones in, it does not read: no more are
// sent.
void MpiTransport::SayAlive(Clock::time_point now) {
  if (now < next_alive_) return;
  next_alive_ = now + timeout_ / 4;
  int taken = 0;
  MPI_Testall(static_cast<int>(alives_.size()), alives_.data(), &taken, MPI_STATUSES_IGNORE);
  if (!taken) return;
  alives_.clear();
  age_ = std::chrono::duration_cast<std::chrono::milliseconds>(now - LatestProgress()).count();
  for (int rank = 0; rank < world_; ++rank) {
    if (rank == rank_) continue;
    MPI_Isend(&age_, sizeof(age_), MPI_CHAR, rank, kAliveTag, news_, &alives_.emplace_back());
  }
}

absl::Status MpiTransport::Record(Failure failure) {
  const std::lock_guard lock(mutex_);
  if (failure_.status.ok()) failure_ = std::move(failure);
  failed_ = true;
  return failure_.status;
}

absl::Status MpiTransport::Fail(Failure failure) {
  const absl::Status first = Record(std::move(failure));
  TellPeers();
  return first;
}

void MpiTransport::Abort(Failure failure) {
  (void)Record(std::move(failure));
}

void MpiTransport::TellPeers() {
  if (std::exchange(has_told_, true)) return;
  const Failure cause = failure();
  const int figures[2] = {static_cast<int>(cause.status.code()), cause.suspect};
  told_.assign(reinterpret_cast<const char*>(figures), sizeof(figures));
  told_ += Message(cause.status).substr(0, 2 * kMaxDescriptionBytes);
  for (int rank = 0; rank < world_; ++rank) {
    if (rank == rank_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(told_.data(), static_cast<int>(told_.size()), MPI_CHAR, rank, kFailedTag, news_,
              &request);
    MPI_Request_free(&request);
  }
}

Failure MpiTransport::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

Traffic MpiTransport::traffic() const {
  return traffic_;
}

}  // namespace ringmaster::collectives::mpi
