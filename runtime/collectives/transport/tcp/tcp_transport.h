// The transport over TCP: one socket per pair of ranks that talk, made by the first operation that
// needs it; the lower rank dials. The thread that runs the operation moves all bytes itself, in a
// poll loop over its sockets, so there is no thread per peer and nothing runs between operations.
//
// Who hangs: while a rank waits, it sends kAlive to its peers four times per operation timeout. A
// peer from which nothing came for a whole timeout although this rank waits for it is stopped or
// busy elsewhere, and is blamed; one that says kAlive waits for somebody else, who will be blamed
// by whoever waits for that one, and the cause travels from rank to rank in kAbort frames. If
// everybody says kAlive and no data moves for three timeouts, the round ends too.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_TCP_TRANSPORT_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_TCP_TRANSPORT_H_

#include <chrono>
#include <memory>
#include <mutex>
#include <poll.h>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collectives/membership.h"
#include "runtime/collectives/transport/tcp/acceptor.h"
#include "runtime/collectives/transport/tcp/dialer.h"
#include "runtime/collectives/transport/tcp/link.h"
#include "runtime/collectives/transport/tcp/listener.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives::tcp {

struct Timeouts {
  std::chrono::milliseconds connect;
  std::chrono::milliseconds operation;
};

class TcpTransport final : public Transport, private FrameHandler, private RoundSink {
 public:
  // Opens the round on `listener`, which must outlive the transport. Errors as Acceptor::OpenRound.
  static absl::StatusOr<std::unique_ptr<TcpTransport>> Create(Membership membership,
                                                              Timeouts timeouts,
                                                              Listener& listener);
  ~TcpTransport() override;

  int rank() const override { return membership_.rank; }
  int world() const override { return membership_.world(); }
  uint64_t round() const override { return membership_.round; }

  absl::Status Begin(const Operation& operation, uint64_t sequence) override;
  void Connect(int peer) override;
  void PostSend(int peer, std::span<const std::byte> bytes) override;
  Receipt PostReceive(int peer, std::span<std::byte> bytes) override;
  absl::Status Wait(Receipt receipt) override;
  absl::Status Finish() override;
  absl::Status Fail(Failure failure) override;
  void Abort(Failure failure) override;
  void TellPeers() override;
  Failure failure() const override;
  Traffic traffic() const override;

 private:
  struct Peer {
    Peer(int rank, FrameHandler* handler) : link(rank, handler) {}
    Link link;
    std::unique_ptr<Dialer> dialer;  // while this rank connects to it
    bool told_operation = false;     // the current operation's description is queued
    uint64_t sequence = 0;           // the newest operation that it has announced,
    uint64_t tag = 0;                // its hash
    std::string operation;           // and its description
  };

  TcpTransport(Membership membership, Timeouts timeouts, Listener& listener);

  // FrameHandler
  absl::Status OnControl(int peer, const FrameHeader& header, const std::string& text) override;
  absl::Status OnData(int peer, const FrameHeader& header, std::optional<size_t> expected) override;
  // RoundSink
  const Membership& membership() const override { return membership_; }
  bool Deliver(int rank, UniqueFd connection) override;

  Peer& peer(int rank) { return *peers_[rank]; }
  FrameHeader Header(FrameType type) const;
  bool busy() const;

  absl::Status Step();
  int PreparePoll(SteadyTime now);
  absl::Status Dispatch(SteadyTime now);
  absl::Status AdvancePeer(int rank, short events, SteadyTime now);
  absl::Status Dial(int rank, SteadyTime now);
  void AdoptArrivals(SteadyTime now);
  std::chrono::milliseconds AlivePeriod() const;
  void SayAlive(SteadyTime now);
  absl::Status CheckPatience(SteadyTime now);
  absl::Status CheckLost(int rank, absl::Status status);
  absl::Status CheckAgreement(int rank, uint64_t sequence, uint64_t tag);
  absl::Status Diverged(int rank, uint64_t sequence);
  absl::Status Blame(int rank, const absl::Status& what);
  std::string Describe(int rank) const { return DescribeRank(membership_, rank); }
  bool RecordFailure(Failure failure);

  const Membership membership_;
  const Timeouts timeouts_;
  Acceptor& acceptor_;
  WakeUp wake_;

  mutable std::mutex mutex_;
  Failure failure_;                                 // guarded by mutex_
  std::vector<std::pair<int, UniqueFd>> arrivals_;  // guarded by mutex_
  std::vector<bool> arrived_;                       // guarded by mutex_

  // The rest belongs to the thread that runs the operation.
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank; none for this one
  uint64_t sequence_ = 0;
  uint64_t tag_ = 0;
  std::string operation_;
  SteadyTime begun_{};
  SteadyTime next_alive_{};
  bool told_ = false;
  std::vector<pollfd> polled_;  // by rank, then the wake-up
};

}  // namespace ringmaster::collectives::tcp

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_TCP_TRANSPORT_H_
