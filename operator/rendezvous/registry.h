// The membership: who is connected, what each worker said last, which round was announced. It is
// the rendezvous without its sockets: streams come in as an interface, time by a clock and Tick.
//
// Rules:
// - A stream says Hello first, within the time-out; what comes before it, or instead, ends the
//   stream. Of two streams of one pod UID that which was opened last stands, whichever Hello is
//   checked first; messages of the other count no more.
// - A Hello whose sender cannot be checked at once waits: its stream gets heartbeats meanwhile and
//   is not silent. Nobody is believed before, but while Hellos wait for long, or their checks fail,
//   nobody's absence means anything either, and WorkersView::since moves on.
// - A worker that is not heard of for the time-out is lost: its stream is ended, its view says
// since
//   when. A Tick that comes late itself says that this process stood still, not the workers: they
//   get that time on top.
// - A round goes to each connected member once per stream, in the order announced; a member that
//   dials in later gets it right after Accepted. Other workers get nothing and wait for the next.
// - A worker that has said Exited and closed its side waits until it is let go, with heartbeats
//   meanwhile; nothing else is told to it. A stream that ends with OK says that what came over it
//   is stored.
// - Each change of a job's view calls `changed` with its key; mere progress at most once per
//   `progress_interval` and job.
//
// Thread safety: every method may be called from any thread. `changed`, the verifier and the
// reviewer, which may block, are called without a lock held; Downstream under the lock, so it must
// neither block nor call back. Messages of one stream must be handed in one after another.
#ifndef RINGMASTER_OPERATOR_RENDEZVOUS_REGISTRY_H_
#define RINGMASTER_OPERATOR_RENDEZVOUS_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"
#include "operator/kube/token_reviewer.h"
#include "operator/manager/worker_link.h"
#include "operator/rendezvous/pod_verifier.h"
#include "operator/rendezvous/source_log.h"
#include "operator/rendezvous/worker_record.h"

namespace ringmaster::rendezvous {

namespace v1 {
class FromWorker;
class Hello;
class ToWorker;
}  // namespace v1

// A stream's way down to its launcher. Shared by the registry and the stream; every method may be
// called after the stream is gone and then does nothing.
class Downstream {
 public:
  virtual ~Downstream() = default;
  // Queues the message.
  virtual void Send(const v1::ToWorker& message) = 0;
  // Ends the stream with this status when what is queued has been sent. The first call counts.
  virtual void End(const absl::Status& status) = 0;
};

struct Timing {
  Duration heartbeat = std::chrono::milliseconds(500);
  Duration timeout = std::chrono::seconds(5);
  Duration progress_interval = std::chrono::milliseconds(500);
};

class Registry : public manager::WorkerLink {
 public:
  using StreamId = std::uint64_t;

  struct Options {
    Timing timing;
    std::string secret;  // round_key.h
    // Who says which pod a worker's token was issued to. Null: workers are believed, where nobody
    // else can reach the port.
    kube::TokenReviewer* reviewer = nullptr;
  };

  // `clock`, `verifier` and the reviewer must outlive the registry.
  Registry(Options options, const Clock& clock, PodVerifier& verifier,
           std::function<void(const kube::ObjectKey& job)> changed);
  ~Registry() override;

  // A stream is there. `source` is where it comes from, for the log.
  StreamId Opened(std::shared_ptr<Downstream> downstream, const std::string& source);
  void Received(StreamId stream, const v1::FromWorker& message);
  // A Hello has come over it, and waits for a thread that may block to hand it to Received.
  void Queued(StreamId stream);
  // The launcher has closed its side, or its stream has broken: everything that it said has been
  // read. Where its program has ended the stream stays until it is let go; else this ends it.
  void HalfClosed(StreamId stream);
  // The stream is gone, however it ended.
  void Closed(StreamId stream);

  // Sends heartbeats that are due, ends silent streams, tells of progress held back, and forgets
  // workers whose pods are gone. To be called several times per heartbeat.
  void Tick();

  // Refuses every worker, naming where the leader is, until Activate; ends those connected. An
  // operator that does not lead must not gather a membership.
  void StandBy(const std::string& leader);
  void Activate();

  reconcile::WorkersView SnapshotFor(const kube::ObjectKey& job) override;
  void Announce(const kube::ObjectKey& job, const reconcile::Announcement& round) override;
  void Send(const kube::ObjectKey& job, const std::string& pod_uid,
            const reconcile::WorkerCommand& command) override;
  void LetGo(const kube::ObjectKey& job, const std::string& pod_uid) override;
  void Forget(const kube::ObjectKey& job) override;

 private:
  struct Stream {
    std::shared_ptr<Downstream> downstream;
    std::string source;
    SteadyTime heard;
    bool greeted = false;                    // has sent its Hello
    std::optional<SteadyTime> waits;         // since when, for the answer to its Hello
    bool said_all = false;                   // has closed its side and waits to be let go
    std::optional<WorkerIdentity> identity;  // once accepted
    std::int64_t told_round = 0;
    std::string final_command;              // the last Drain or Stop, which is not repeated
    std::optional<Time> checkpoint_wanted;  // likewise: the last CheckpointNow's
  };
  struct Worker {
    reconcile::WorkerView view;
    StreamId stream = 0;  // 0 while not connected
  };
  struct Job {
    std::map<std::string, Worker> workers;  // by pod UID
    std::optional<reconcile::Announcement> round;
    std::map<std::string, int> ranks;  // of the round's members, by pod UID
    std::string key;
    SteadyTime progress_told{};
    bool progress_pending = false;
  };
  using Keys = std::set<kube::ObjectKey>;

  // All below: the caller holds mutex_, but for those that say otherwise.
  void Notify(const Keys& jobs) const;                                              // without it
  void Greet(StreamId id, const v1::Hello& hello);                                  // without it
  bool BeginHello(StreamId id, std::string* source, std::string* leader);           // without it
  absl::Status Check(const WorkerIdentity& worker, const v1::Hello& hello);         // without it
  absl::Status CheckToken(const WorkerIdentity& worker, const std::string& token);  // without it
  void Refuse(StreamId id, const std::string& reason, bool permanent, const std::string& leader);
  void Accept(StreamId id, const WorkerIdentity& identity, const v1::Hello& hello);
  void TakeHeartbeat(Stream& stream, std::int64_t round, Keys* changed);
  void TakeMessage(StreamId id, const v1::FromWorker& message, Keys* changed);
  void NoteProgress(const kube::ObjectKey& key, Job& job, Keys* changed);
  void Detach(StreamId id, const std::string& why, Keys* changed);
  void TellRound(Job& job, Worker& worker);
  Stream* Find(StreamId id);
  Worker* WorkerOf(const Stream& stream);
  Worker* FindWorker(const kube::ObjectKey& job, const std::string& pod_uid);
  Stream* ListeningStream(const Worker& worker);
  void NoteTheWaiting(SteadyTime now);
  void ForgiveLateTick(SteadyTime now);
  void EndSilent(SteadyTime now, Keys* changed);
  void SendHeartbeats(SteadyTime now);
  void TellHeldBackProgress(SteadyTime now, Keys* changed);
  void PruneGonePods();  // without it

  const Options options_;
  const Clock& clock_;
  PodVerifier& verifier_;
  const std::function<void(const kube::ObjectKey&)> changed_;
  SourceLog refusals_;

  std::mutex mutex_;
  Time since_;
  Time deaf_{};                           // when it could last not tell who called
  std::optional<SteadyTime> line_since_;  // since when a Hello has always waited for long, and no
                                          // check has failed
  std::optional<std::string> leader_elsewhere_;
  StreamId next_stream_ = 1;
  std::uint64_t heartbeat_sequence_ = 0;
  std::map<StreamId, Stream> streams_;
  std::map<kube::ObjectKey, Job> jobs_;
  SteadyTime last_tick_;
  SteadyTime last_heartbeat_;
  SteadyTime last_prune_;
};

}  // namespace ringmaster::rendezvous

#endif  // RINGMASTER_OPERATOR_RENDEZVOUS_REGISTRY_H_
