// The transport over MPI: every operation of the Communicator where `mpirun` starts the ranks and
// the cluster's MPI knows its network best. Compiled where mpi.h is found (the C interface only).
//
//   int level = 0;
//   MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
//   RM_ASSIGN_OR_RETURN(auto transport, MpiTransport::Create(MPI_COMM_WORLD, round, timeout));
//   Communicator communicator(std::move(transport), 256 * 1024);
//
// One message of MPI for each message of the transport. Its tag is a digest of the operation and
// of its number among those of the two ranks: a rank that meets another tag has found a peer that
// diverged. News of failures, and of ranks that wait themselves, go over a second communicator.
//
// What differs from TCP: MPI cannot take back a message that it has matched, so memory posted to
// an operation that failed must live as long as the process; a worker whose round failed ends. A
// rank that dies is noticed by mpirun, which ends the job, or else by the operation's timeout.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_MPI_MPI_TRANSPORT_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_MPI_MPI_TRANSPORT_H_

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mpi.h>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collectives/transport/arrival.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives::mpi {

class MpiTransport final : public Transport {
 public:
  // A collective call of all ranks of `group`, of which it makes its own copies; MPI must have been
  // initialised with MPI_THREAD_SERIALIZED at least. `timeout` is the time that a peer may be
  // silent while this rank waits for it. kFailedPrecondition: MPI is not ready; kInvalidArgument:
  // the timeout is not positive; kInternal: an error of MPI.
  static absl::StatusOr<std::unique_ptr<MpiTransport>> Create(MPI_Comm group, uint64_t round,
                                                              std::chrono::milliseconds timeout);

  // Collective unless the round failed. Must run before MPI_Finalize.
  ~MpiTransport() override;

  int rank() const override { return rank_; }
  int world() const override { return world_; }
  uint64_t round() const override { return round_; }
  Workspace& workspace() override { return workspace_; }

  absl::Status Begin(const Operation& operation, const Scope& scope) override;
  void Connect(int /*peer*/) override {}  // MPI is connected
  bool PostSend(int peer, std::span<const std::byte> bytes) override;
  Receipt PostReceive(int peer, std::span<std::byte> bytes) override;
  Receipt PostCombine(int peer, const Combining& combining) override;
  absl::Status Wait(Receipt receipt) override;
  absl::Status Look(bool progress) override;
  absl::Status Finish() override;
  absl::Status Fail(Failure failure) override;
  // MPI cannot take back what it has matched: as Fail.
  absl::Status Abandon(Failure failure) override { return Fail(std::move(failure)); }
  void Abort(Failure failure) override;
  void TellPeers() override;
  Failure failure() const override;
  Traffic traffic() const override;

 private:
  using Clock = std::chrono::steady_clock;

  struct Peer {
    uint64_t begun = 0;  // operations that both take part in
    int tag = 0;         // of the current one
    std::deque<Arrival> expected;
    uint64_t posted = 0;    // receives of this operation,
    uint64_t complete = 0;  // and those that are done
    MPI_Request arriving = MPI_REQUEST_NULL;
    std::vector<std::byte> scratch;  // of what is combined
    int sending = 0;                 // messages to it that are not done
    Clock::time_point heard{};
    Clock::time_point progress{};  // when, as it says, data last moved there
    bool waited_for() const { return !expected.empty() || sending > 0; }
  };
  struct Sending {
    MPI_Request request;
    int peer;
  };

  MpiTransport(uint64_t round, std::chrono::milliseconds timeout)
      : round_(round), timeout_(timeout) {}

  Receipt Post(int peer, const Arrival& arrival);
  // Moves bytes and news until `done`, or an error.
  template <typename Done>
  absl::Status Progress(Done done);
  // All say whether anything moved.
  absl::StatusOr<bool> Move();
  absl::StatusOr<bool> Receive(int rank);
  absl::StatusOr<bool> ReapSends();
  absl::Status Match(int rank, MPI_Message* message, const MPI_Status& status);
  // What is to be done now and then where nothing moves.
  absl::Status Attend(Clock::time_point now);
  absl::Status ReadNews(Clock::time_point now);
  absl::Status CheckPatience(Clock::time_point now);
  void SayAlive(Clock::time_point now);
  Clock::time_point LatestProgress() const;
  absl::Status Record(Failure failure);
  int TagOf(const Scope& scope, uint64_t number) const;

  const uint64_t round_;
  const std::chrono::milliseconds timeout_;
  MPI_Comm data_ = MPI_COMM_NULL;
  MPI_Comm news_ = MPI_COMM_NULL;
  int rank_ = 0;
  int world_ = 1;
  int largest_tag_ = 0;

  mutable std::mutex mutex_;
  Failure failure_;  // guarded by mutex_
  std::atomic<bool> failed_{false};

  // The rest belongs to the thread that runs the operation.
  std::vector<Peer> peers_;  // by rank
  std::vector<Sending> sends_;
  Workspace workspace_;
  Clock::time_point moved_{};  // when data last moved in this operation, or its beginning
  std::vector<MPI_Request> alives_;
  int64_t age_ = 0;  // of the last progress, in ms, as the last `alives_` say it
  std::optional<absl::Status> wrong_call_;  // of a post, which cannot return it
  Operation operation_;                     // the last begun; its words are the following
  std::string operation_name_;
  std::string operation_note_;
  Clock::time_point next_alive_{};
  Traffic traffic_;
  std::string told_;  // what the peers were told; MPI may read it as long as it lives
  bool has_told_ = false;
};

}  // namespace ringmaster::collectives::mpi

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_MPI_MPI_TRANSPORT_H_
