// The transport over TCP: one socket per pair of ranks that talk, made by the first operation that
// needs it; the lower rank dials. The thread that runs the operation moves all bytes itself, in a
// poll loop over its sockets, so there is no thread per peer and nothing runs between operations.
//
// Who hangs: while a rank waits, it sends kAlive to its peers four times per operation timeout. A
// peer from which nothing came for a whole timeout although this rank waits for it is stopped or
// busy elsewhere, and is blamed; one that says kAlive waits for somebody else, who will be blamed
// by whoever waits for that one, and the cause travels from rank to rank in kAbort frames. Ranks
// that wait for one another in a circle find it (tcp_transport_circle.cc), and if everybody says
// kAlive and no data moves for three timeouts, the round ends too. A kAlive says how long ago the
// sender, or anybody whom it waits for, last moved data: a rank may well wait for one that is busy
// with others in another group.
//
// A peer that sends what nobody asks for yet is held back by TCP, and so is what it says after
// that. Who has moved no data for a hundredth of a second therefore reads ahead of what was asked
// for, up to a bound: an abort and a death are noticed there, too. Who aborts ends its side of each
// connection after saying so, upon which all that has come is read; and where its words do not get
// through, as the peer's kernel has no room for them, it dials again, whichever rank it is, to say
// them on a connection of their own.
//
// Who diverged: each pair of ranks counts the operations in which both take part, whatever groups
// they belong to. Frames carry that number and the operation's hash; the same number with another
// hash is a divergence. Before its first data for a peer in an operation a rank describes the
// operation, and where it has only received for a hundredth of a second it describes it as well,
// so that two ranks that wait for one another in different operations find out.
//
// Two ranks that find themselves on one machine move their data through memory that both have
// mapped, beside the connection, which goes on to carry everything else: who waits for data looks
// at the memory for a moment and then sleeps in the same poll loop, where the other's kBell wakes
// it. So deadlines, failures and deaths are noticed in one place on either path.
//
// What goes to several ranks that share memory with this one is written once, to a board that they
// have all mapped (tcp_transport_board.cc).
//
// Where TLS is wanted each connection is encrypted before its first frame (tls_stream.h); links and
// all that is said above are the same.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_TCP_TRANSPORT_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_TCP_TRANSPORT_H_

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <poll.h>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collectives/membership.h"
#include "runtime/collectives/transport/choice.h"
#include "runtime/collectives/transport/shm/board.h"
#include "runtime/collectives/transport/tcp/acceptor.h"
#include "runtime/collectives/transport/tcp/congestion.h"
#include "runtime/collectives/transport/tcp/dialer.h"
#include "runtime/collectives/transport/tcp/link.h"
#include "runtime/collectives/transport/tcp/listener.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives::tcp {

struct Timeouts {
  std::chrono::milliseconds connect;
  std::chrono::milliseconds operation;
};

struct SharedMemoryOptions {
  TransportChoice choice = TransportChoice::kAuto;
  size_t ring_bytes = 0;  // per direction and pair, a power of two; 0: by the world size
};

struct ConnectionOptions {
  Encryption encryption = Encryption::kNone;
  std::string congestion_control = kAutoCongestion;  // congestion.h
};

class TcpTransport final : public Transport, private FrameHandler, private RoundSink {
 public:
  // Opens the round on `listener`, which must outlive the transport. Errors as Acceptor::OpenRound,
  // or CheckCongestion.
  static absl::StatusOr<std::unique_ptr<TcpTransport>> Create(Membership membership,
                                                              Timeouts timeouts,
                                                              SharedMemoryOptions shared,
                                                              Listener& listener,
                                                              ConnectionOptions connections = {});
  ~TcpTransport() override;

  int rank() const override { return membership_.rank; }
  int world() const override { return membership_.world(); }
  uint64_t round() const override { return membership_.round; }
  Workspace& workspace() override { return workspace_; }

  absl::Status Begin(const Operation& operation, const Scope& scope) override;
  void Connect(int peer) override;
  bool PostSend(int peer, std::span<const std::byte> bytes) override;
  bool PostSendToEach(std::span<const int> peers, std::span<const std::byte> bytes) override;
  absl::StatusOr<bool> TrySends() override;
  Receipt PostReceive(int peer, std::span<std::byte> bytes) override;
  Receipt PostCombine(int peer, const Combining& combining) override;
  absl::Status Wait(Receipt receipt) override;
  absl::Status Look(bool progress) override;
  absl::Status Finish() override;
  absl::Status Fail(Failure failure) override;
  absl::Status Abandon(Failure failure) override;
  void Abort(Failure failure) override;
  void TellPeers() override;
  Failure failure() const override;
  bool has_failed() const override { return failed_.load(std::memory_order_seq_cst); }
  Traffic traffic() const override;

 private:
  // A peer may be that many operations behind and still be told that it diverged.
  static constexpr size_t kRememberedTags = 16;
  static constexpr std::chrono::milliseconds kLongWait{10};
  static constexpr size_t kNotPolled = SIZE_MAX;

  struct Peer {
    Peer(int rank, FrameHandler* handler) : link(rank, handler) {}
    Link link;
    std::unique_ptr<Dialer> dialer;                // while this rank connects to it
    std::unique_ptr<Link> last_words;              // beside the link: for an abort, either way
    SteadyTime progress{};                         // the newest that it told of
    bool takes_part = false;                       // in the current operation
    bool told_operation = false;                   // its description is queued or written
    bool told_waiting = false;                     // and that this rank has waited for long
    uint64_t begun = 0;                            // operations that this rank has begun with it,
    std::array<uint64_t, kRememberedTags> tags{};  // and the hashes of the last, by number
    uint64_t sequence = 0;                         // the newest operation that it has announced,
    uint64_t tag = 0;                              // its hash
    std::string operation;                         // and its description
    uint64_t question = 0;                         // the last of its own that was passed on
    bool withdrew = false;                         // the offer, before it was answered
    std::unique_ptr<shm::Channel> proposed;        // made, and not accepted yet
    size_t polled_at = kNotPolled;                 // where among polled_

    uint64_t& tag_of(uint64_t number) { return tags[number % kRememberedTags]; }
    bool remembers(uint64_t number) const {
      return number <= begun && begun - number < kRememberedTags;
    }
  };

  TcpTransport(Membership membership, Timeouts timeouts, SharedMemoryOptions shared,
               Listener& listener, ConnectionOptions connections);

  // FrameHandler
  absl::Status OnControl(int peer, const FrameHeader& header, const std::string& text) override;
  absl::Status OnData(int peer, const FrameHeader& header, std::optional<size_t> expected) override;
  // RoundSink
  const Membership& membership() const override { return membership_; }
  Encryption encryption() const override { return connections_.encryption; }
  bool Deliver(int rank, Connection connection) override;

  Peer& peer(int rank) { return *peers_[rank]; }
  FrameHeader Header(FrameType type) const;
  FrameHeader OperationHeader(FrameType type, int rank);
  // Whether the operation is what was noted of the one before, and keeps it for the next.
  bool IsLast(const Operation& operation, const Scope& scope) const;
  void Remember(const Operation& operation, const Scope& scope);
  void TellOperation(int rank);
  void TellWaiting(int rank);
  const std::string& DescribeOperation();
  bool busy() const;

  // Waiting (tcp_transport_wait.cc): until `done`, first without a system call that sleeps, then in
  // Step.
  template <typename Done>
  absl::Status Until(const Done& done);
  // How many looks pass before the clock is read.
  int FreeLooks() const;
  // So many looks for the awaited message, through memory, until it is there.
  int LookForAwaited();
  // After so many looks at memory and sockets without news; false: sleep. `until` is kept between
  // them.
  bool MayLookAgain(int looks, SteadyTime* until);
  // Whether the awaited message comes through memory, from a rank that has not left its processor.
  bool AwaitedRuns();
  void LetOthersRun();
  // Whether data that is still to move goes over a connection.
  bool AwaitsSockets();
  // Whether it is time to look at the sockets while there is always something to move.
  bool MustLookUp();
  absl::StatusOr<bool> MoveShared();
  absl::StatusOr<bool> MoveSockets();
  void RingBells();
  // Announces that this rank sleeps. True: there is no need to.
  absl::StatusOr<bool> Doze();
  absl::Status Step();
  absl::Status Poll(bool may_sleep);
  int PreparePoll(SteadyTime now);
  absl::Status Dispatch(SteadyTime now);
  absl::Status AdvancePeer(int rank, short events, SteadyTime now);
  absl::Status Dial(int rank, SteadyTime now);
  void AdoptArrivals(SteadyTime now);
  // Settling how data goes to a peer (tcp_transport_path.cc).
  void Offer(int rank);
  absl::Status OnPath(int rank, const FrameHeader& header, const std::string& text);
  absl::Status Answer(int rank, const FrameHeader& header, const std::string& text);
  absl::Status OnOffer(int rank, const std::string& machine);
  absl::Status OnSegment(int rank, const FrameHeader& header, const std::string& name);
  absl::Status Decline(int rank, const std::string& why);
  absl::Status SettleOnTcp(int rank, const std::string& why);
  void SettleOnSharedMemory(int rank, std::unique_ptr<shm::Channel> channel);
  bool MaySpin() const;
  void WithdrawOffers();
  size_t RingBytes() const;

  // What is written once for several (tcp_transport_board.cc).
  const shm::Board* OwnBoard();
  // Takes the board's name away when nobody is to map it any more.
  void UnlinkBoard();
  // Writes as much of a message as there is room for, and tells `readers_`; returns how much.
  size_t WriteOnBoard(std::span<const std::byte> message);

  // Ranks that wait for one another in a circle (tcp_transport_circle.cc).
  bool WaitsFor(int rank);
  void PlanQuestion(SteadyTime now);
  void AskAround(SteadyTime now);
  void PassOn(int origin, uint64_t question, const std::string& path);
  absl::Status OnCircle(int from, const FrameHeader& header, const std::string& path);

  std::chrono::milliseconds AlivePeriod() const;
  void AnnounceWaiting(SteadyTime now);
  void SayAlive(SteadyTime now);
  SteadyTime LastMove() const;  // of data, by this rank in this operation
  SteadyTime LatestProgress() const;
  absl::Status CheckPatience(SteadyTime now);
  // Whether this rank was away from its wires a moment ago, where it came back `late`.
  bool WasHeldUp(std::chrono::steady_clock::duration late, SteadyTime now);
  void AwaitDelivery();
  absl::Status CheckRound(const FrameHeader& header) const;
  absl::Status CheckAgreement(int rank, uint64_t sequence, uint64_t tag);
  absl::Status Diverged(int rank, uint64_t sequence);
  absl::Status Blame(int rank, const absl::Status& what);
  void ListenForCause(int ended);
  std::string Describe(int rank) const { return DescribeRank(membership_, rank); }
  bool RecordFailure(Failure failure);

  // Saying why the round failed, and hearing it (tcp_transport_last_words.cc).
  void TellOnLeaving();
  void SayWhy(Link& link);
  void KeepTelling(std::chrono::milliseconds most, bool on_connections);
  void TellOn(Link& link, SteadyTime now);
  void DialStuck(SteadyTime deadline);
  void DialToTell(int rank);
  Link& NewLastWords(int rank);
  void HearLastWords(SteadyTime now);

  const Membership membership_;
  const Timeouts timeouts_;
  const SharedMemoryOptions shared_options_;
  const ConnectionOptions connections_;
  const shm::Processors processors_;
  Acceptor& acceptor_;
  WakeUp wake_;

  std::atomic<bool> failed_ = false;  // failure_ is set
  mutable std::mutex mutex_;
  Failure failure_;                                   // guarded by mutex_
  std::vector<std::pair<int, Connection>> arrivals_;  // guarded by mutex_
  std::vector<int> connections_due_;                  // of each rank's; guarded by mutex_

  // The rest belongs to the thread that runs the operation.
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank; none for this one
  // The current operation or the last one, which views these copies: a peer may diverge when the
  // caller's words are gone.
  Operation operation_;
  std::string operation_name_;
  size_t name_bytes_ = 0;  // of the caller's, which may be longer
  std::string operation_note_;
  uint64_t group_ = 0;
  std::string group_name_;
  uint64_t hash_ = 0;        // of it and its group; 0: there was none yet
  std::string description_;  // of the operation, for DescribeOperation
  SteadyTime begun_{};
  SteadyTime next_alive_{};        // runs on between operations: many short ones are no silence
  bool waits_long_ = false;        // whom it waits for is told what for
  SteadyTime reads_ahead_from_{};  // when it listens to those whose data it has not asked for
  SteadyTime elsewhere_{};  // when something moved that this rank waited for beside the wires
  // What Wait waits for; peer -1: everything posted, as Finish does; this rank: nothing, in Look.
  Receipt awaited_{.peer = -1};
  uint64_t waits_ = 0;          // calls of any of them so far
  uint64_t planned_in_ = 0;     // the one in which this was set:
  SteadyTime next_question_{};  // when to ask whether it waits in a circle
  uint64_t questions_ = 0;      // so far,
  uint64_t asked_in_ = 0;       // and the call in which the last was asked
  SteadyTime held_up_{};        // when it last came back from where it was held up
  bool told_ = false;
  Workspace workspace_;
  bool has_begun_ = false;    // begun_ is this operation's: set when it first looks at its sockets
  unsigned moves_ = 0;        // through shared memory; over many of them the sockets are looked at,
  SteadyTime look_up_{};      // and from then on at once
  std::vector<int> sharing_;  // the ranks that share memory with this one,
  std::vector<int> connected_;         // and those with which data goes over TCP
  std::unique_ptr<shm::Board> board_;  // none: not tried yet, or not to be had
  bool tried_board_ = false;
  std::vector<int> readers_;    // of the message that is being written to the board
  bool short_ = false;          // the operation is one whose time is its latency
  bool may_spin_ = false;       // there is a processor for each rank of the machine
  std::vector<pollfd> polled_;  // peers, last words, the wake-up
};

}  // namespace ringmaster::collectives::tcp

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_TCP_TRANSPORT_H_
