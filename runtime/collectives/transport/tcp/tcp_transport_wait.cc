// How a TcpTransport waits: it moves bytes wherever they go, looks for news for a while, and
// sleeps.
#include <algorithm>
#include <cerrno>
#include <ctime>
#include <sched.h>

#include "common/check.h"
#include "runtime/collectives/transport/tcp/tcp_transport.h"

namespace ringmaster::collectives::tcp {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kLongestPollMs = 1000;

// How long who waits looks at memory and sockets before it sleeps. Where every rank has a
// processor: longer than a sleeper takes to wake, or two that have slept once would put one another
// to sleep again and again. Only after the first part of it does it let others run in between:
// whoever else is there then gets a whole slice of time, longer than most messages take.
constexpr std::chrono::microseconds kSpin{300};
constexpr std::chrono::microseconds kKeep{100};
constexpr int kLooksPerClock = 64;  // some microseconds
// Where they have not, whoever waits lets the others run, after so many looks at most for what a
// rank owes that runs on another processor: that comes sooner than this rank would be back. So many
// looks in all.
constexpr int kNearLooks = 16;
constexpr int kCrowdedLooks = 100;

// Who always finds something to move looks at the sockets now and then: an abort may have come, and
// peers want to hear that it lives. After so many moves, or where these take long.
constexpr unsigned kMovesPerPoll = 256;
constexpr unsigned kMovesPerClock = 16;
constexpr milliseconds kLongestBlindness{20};

// How long a rank that was held up listens before it blames anybody.
constexpr milliseconds kListeningAnew{500};

// The steady clock as it was at the last tick of the system, some milliseconds ago at most: it
// costs a quarter of it.
SteadyTime CoarseNow() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return SteadyTime(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

void PauseProcessor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

absl::Status TcpTransport::Wait(Receipt receipt) {
  const Link& link = peer(receipt.peer).link;
  awaited_ = receipt;
  ++waits_;
  return Until([&] { return link.completed_receives() >= receipt.number; });
}

absl::Status TcpTransport::Finish() {
  awaited_.peer = -1;
  ++waits_;
  RM_RETURN_IF_ERROR(Until([&] { return !busy(); }));
  RingBells();
  UnlinkBoard();
  // Many short operations in shared memory never look at a socket, where others want to hear that
  // this rank lives.
  if (!sharing_.empty() && CoarseNow() >= next_alive_) return Poll(/*may_sleep=*/false);
  return absl::OkStatus();
}

template <typename Done>
absl::Status TcpTransport::Until(const Done& done) {
  if (done()) return absl::OkStatus();
  // Also where nobody sleeps: who looks for a message while its own is still on its way to memory
  // takes the line from the one that writes it, and the fence waits until that has gone.
  RingBells();
  int looks = LookForAwaited();
  SteadyTime until{};
  while (true) {
    RM_ASSIGN_OR_RETURN(bool moved, MoveShared());
    if (failed_.load(std::memory_order_relaxed)) return Fail(failure());
    if (!moved && !connected_.empty()) {
      RM_ASSIGN_OR_RETURN(moved, MoveSockets());
    }
    if (moved && MustLookUp()) RM_RETURN_IF_ERROR(Poll(/*may_sleep=*/false));
    if (done()) return absl::OkStatus();  // which may be without a byte
    if (moved) {
      RingBells();
      looks = 0;
    } else if (!MayLookAgain(looks++, &until)) {
      RM_RETURN_IF_ERROR(Step());
      RingBells();
      looks = 0;
    }
  }
}

// Most of what is awaited through memory comes soon, and a look at its place alone is the shortest.
int TcpTransport::LookForAwaited() {
  const int most = FreeLooks();
  if (most == 0 || sharing_.size() != 1 || awaited_.peer != sharing_.front()) return 0;
  const Link& link = peer(awaited_.peer).link;
  if (link.has_held()) return 0;
  int looks = 0;
  for (; looks < most && !link.HasArrived(); ++looks) PauseProcessor();
  return looks;
}

// A look at the clock takes a quarter of the time of a small message through memory, which is there
// after a few looks.
int TcpTransport::FreeLooks() const {
  return may_spin_ && connected_.empty() ? kLooksPerClock : 0;
}

// Where there are more ranks than processors, the one that is waited for may need this one's.
bool TcpTransport::MayLookAgain(int looks, SteadyTime* until) {
  if (!short_ && AwaitsSockets()) return false;
  if (!may_spin_) {
    if (looks == kCrowdedLooks) return false;
    if (looks < kNearLooks && AwaitedRuns()) {
      PauseProcessor();
    } else {
      LetOthersRun();
    }
    return true;
  }
  if (looks >= FreeLooks() && looks % kLooksPerClock == 0) {
    const SteadyTime now = steady_clock::now();
    if (looks == FreeLooks()) *until = now + kSpin;
    if (now >= *until) return false;
    if (now >= *until - (kSpin - kKeep)) sched_yield();
  }
  PauseProcessor();
  return true;
}

bool TcpTransport::AwaitedRuns() {
  if (awaited_.peer < 0) return false;
  const Link& link = peer(awaited_.peer).link;
  return link.path() == Path::kSharedMemory && !link.channel().IsOtherAway();
}

void TcpTransport::LetOthersRun() {
  for (const int rank : sharing_) peer(rank).link.channel().SetAway(true);
  sched_yield();
  for (const int rank : sharing_) peer(rank).link.channel().SetAway(false);
}

bool TcpTransport::AwaitsSockets() {
  return std::ranges::any_of(connected_, [&](int rank) { return peer(rank).link.has_work(); });
}

// Over a connection a move may take as long as a megabyte does.
bool TcpTransport::MustLookUp() {
  ++moves_;
  const bool reads_clock = moves_ % kMovesPerClock == 0 || !connected_.empty();
  return moves_ % kMovesPerPoll == 0 || (reads_clock && CoarseNow() >= look_up_);
}

absl::StatusOr<bool> TcpTransport::MoveShared() {
  bool moved = false;
  for (const int rank : sharing_) {
    Link& link = peer(rank).link;
    if (!link.has_posted() && !link.has_held()) continue;
    const absl::StatusOr<bool> some = link.MoveShared();
    if (!some.ok()) return Blame(rank, some.status());
    moved = moved || *some;
  }
  return moved;
}

// Whether a peer is reachable is the matter of Poll, and so is all that is no data.
absl::StatusOr<bool> TcpTransport::MoveSockets() {
  bool moved = false;
  const SteadyTime now = CoarseNow();
  for (const int rank : connected_) {
    Link& link = peer(rank).link;
    if (!link.attached() || link.left() || !link.has_work()) continue;
    const uint64_t before = link.bytes_moved();
    const absl::Status status = link.Move(now);
    if (!status.ok()) return Blame(rank, status);
    moved = moved || link.bytes_moved() != before;
  }
  return moved;
}

void TcpTransport::RingBells() {
  for (const int rank : sharing_) {
    Link& link = peer(rank).link;
    if (!link.channel().MustWake() || link.left()) continue;
    link.QueueControl(Header(FrameType::kBell), "");
    // Where it cannot be heard, the next look at the connection says why.
    link.Write(steady_clock::now()).IgnoreError();
  }
}

absl::StatusOr<bool> TcpTransport::Doze() {
  for (const int rank : sharing_) peer(rank).link.channel().Doze();
  RM_ASSIGN_OR_RETURN(const bool moved, MoveShared());
  for (const int rank : sharing_) {
    const absl::Status seen = peer(rank).link.InspectShared();
    if (!seen.ok()) return Blame(rank, seen);
  }
  return moved;
}

bool TcpTransport::busy() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const auto& p) { return p != nullptr && p->link.has_work(); });
}

absl::Status TcpTransport::Step() {
  if (const Failure failed = failure(); !failed.status.ok()) return Fail(failed);
  const absl::StatusOr<bool> moved = Doze();
  absl::Status status = moved.status();
  if (status.ok() && !*moved) status = Poll(/*may_sleep=*/true);
  for (const int rank : sharing_) peer(rank).link.channel().Rise();
  return status;
}

absl::Status TcpTransport::Poll(bool may_sleep) {
  const SteadyTime before = steady_clock::now();
  look_up_ = before + kLongestBlindness;
  if (!has_begun_) {
    has_begun_ = true;
    begun_ = before;
  }
  PlanQuestion(before);
  for (const int rank : sharing_) peer(rank).link.NoteShared(before);
  if (waits_long_) WithdrawOffers();
  const int longest_ms = PreparePoll(before);
  const int timeout_ms = may_sleep ? longest_ms : 0;
  if (poll(polled_.data(), polled_.size(), timeout_ms) < 0) {
    RM_CHECK(errno == EINTR, "poll failed");
    return absl::OkStatus();
  }
  const SteadyTime now = steady_clock::now();
  if (polled_.back().revents != 0) {
    wake_.Drain();
    AdoptArrivals(now);  // before anybody is blamed for not having come
  }
  AnnounceWaiting(now);
  SayAlive(now);
  AskAround(now);
  RM_RETURN_IF_ERROR(Dispatch(now));
  return WasHeldUp(now - before - milliseconds(timeout_ms), now) ? absl::OkStatus()
                                                                 : CheckPatience(now);
}

// Once in a time-out, so that one that is held up again and again ends, too.
bool TcpTransport::WasHeldUp(std::chrono::steady_clock::duration late, SteadyTime now) {
  if (late >= kHeldUp && now >= held_up_ + timeouts_.operation) held_up_ = now;
  return now < held_up_ + kListeningAnew;
}

int TcpTransport::PreparePoll(SteadyTime now) {
  SteadyTime next = waits_long_ ? next_alive_ : std::min(next_alive_, begun_ + kLongWait);
  next = std::min(next, next_question_);
  reads_ahead_from_ = LastMove() + kLongWait;
  const bool reads_ahead = now >= reads_ahead_from_;
  polled_.clear();
  for (const auto& p : peers_) {
    if (p == nullptr) continue;
    pollfd entry{-1, 0, 0};
    if (p->dialer != nullptr) {
      entry = p->dialer->Interest();
      next = std::min(next, p->dialer->wake_at());
    } else {
      entry.events = p->link.interest(reads_ahead);
      if (entry.events != 0) entry.fd = p->link.fd();
      // These need no event: they go on, or fail, at once.
      if (p->link.unblocked() || (p->link.left() && p->link.has_work())) next = now;
      if (p->link.held_back() && !reads_ahead) next = std::min(next, reads_ahead_from_);
    }
    // No more entries than there are descriptors, or poll refuses them.
    p->polled_at = entry.fd < 0 ? kNotPolled : polled_.size();
    if (entry.fd >= 0) polled_.push_back(entry);
  }
  for (const auto& p : peers_) {
    if (p == nullptr || p->last_words == nullptr) continue;
    polled_.push_back({p->last_words->fd(), POLLIN, 0});
    if (p->last_words->unblocked()) next = now;
  }
  polled_.push_back({wake_.fd(), POLLIN, 0});
  const auto left = std::chrono::ceil<milliseconds>(next - now).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, kLongestPollMs));
}

absl::Status TcpTransport::Dispatch(SteadyTime now) {
  HearLastWords(now);
  if (failed_.load(std::memory_order_relaxed)) return Fail(failure());
  for (int rank = 0; rank < world(); ++rank) {
    if (rank == membership_.rank) continue;
    const size_t at = peer(rank).polled_at;
    const absl::Status status = AdvancePeer(rank, at == kNotPolled ? 0 : polled_[at].revents, now);
    if (!status.ok()) return Blame(rank, status);
  }
  return absl::OkStatus();
}

absl::Status TcpTransport::AdvancePeer(int rank, short events, SteadyTime now) {
  Peer& p = peer(rank);
  if (p.dialer != nullptr) return Dial(rank, now);
  if (p.link.left() && p.link.has_work()) {
    return absl::UnavailableError("has left the round");
  }
  const bool ended = (events & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
  const bool readable = (events & POLLIN) != 0 || ended;
  const bool reads = readable || p.link.unblocked();
  const bool writes = (events & POLLOUT) != 0;
  const bool moves = reads && writes && !p.link.held_back();
  if (moves) RM_RETURN_IF_ERROR(p.link.Move(now));
  if (reads && !moves) RM_RETURN_IF_ERROR(p.link.Read(now));
  // Before a peer that is gone is written to, which says less than its last words do.
  if (p.link.held_back() && (ended || now >= reads_ahead_from_))
    RM_RETURN_IF_ERROR(p.link.ReadAhead(now));
  if (writes && !moves) RM_RETURN_IF_ERROR(p.link.Write(now));
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives::tcp
