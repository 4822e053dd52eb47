// Workers that a script moves, in place of launchers that dial in over the network: they meet the
// program's own rendezvous (operator/rendezvous), which says who may join, who is lost, and who is
// told what, and they print what they are told.
//
// A worker remembers what a launcher does: the round that it is in, and what the operator must hear
// of it, which it says again on each new stream (it keeps a launcher's own outbox). It takes each
// new round at once, and sends heartbeats while time passes, until its pod has ended or the script
// says otherwise. Once it has said that its program has ended it waits to be let go, and dials in
// again where the operator dies before that. Not thread-safe.
#ifndef RINGMASTER_TESTS_SUPPORT_SCRIPTED_WORKERS_H_
#define RINGMASTER_TESTS_SUPPORT_SCRIPTED_WORKERS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "launcher/outbox.h"
#include "operator/kube/client.h"
#include "operator/manager/worker_link.h"
#include "operator/rendezvous/pod_verifier.h"
#include "operator/rendezvous/registry.h"

namespace ringmaster::rendezvous::v1 {
class Event;
}

namespace ringmaster::testing {

class ScriptedWorkers : public manager::WorkerLink {
 public:
  // References must outlive this. `api` is where pods are looked up; lines are appended to `log`.
  ScriptedWorkers(const Clock& clock, kube::Client& api, std::string& log,
                  std::function<void(const kube::ObjectKey&)> changed);
  ~ScriptedWorkers() override;

  // A worker dials in and says Hello, Ready where its trainer is ours, and again what it has said
  // before and the operator may not know. Its address is where its peers reach it. One that is
  // ready already stays so with the kernels that it has, where none are given.
  void Join(const rendezvous::WorkerIdentity& worker, bool native, const std::string& address,
            const std::string& kernels_digest);
  // Those whose streams the operator's end has broken dial in again, as launchers do, as long as
  // their pods have not ended.
  void DialAgain();
  // Its stream breaks.
  void Leave(const kube::ObjectKey& pod);
  // It says nothing more, not even heartbeats, and its stream stays.
  void FallSilent(const kube::ObjectKey& pod);
  // It says this, and leaves for good where its program has ended. kFailedPrecondition where it is
  // not connected, or silent.
  absl::Status Say(const kube::ObjectKey& pod, const rendezvous::v1::Event& event);
  // The round that it is in, 0 for none.
  std::int64_t RoundOf(const kube::ObjectKey& pod) const;
  // The pods of the job whose workers are connected and not silent, in name order.
  std::vector<std::string> Connected(const kube::ObjectKey& job) const;
  // Whether the worker of a pod has said that its program has ended.
  bool HasLeft(const kube::ObjectKey& pod) const;
  // Whether it has, and has not been let go yet: its pod goes on.
  bool WaitsToLeave(const kube::ObjectKey& pod) const;

  // The streams of those whose pods have ended or are gone break: no process holds them any more.
  void BuryTheDead();
  // A moment has passed, no longer than a heartbeat.
  void Beat();
  // The operator starts anew: nobody is connected, and it knows nobody.
  void Reset();

  reconcile::WorkersView SnapshotFor(const kube::ObjectKey& job) override;
  void Announce(const kube::ObjectKey& job, const reconcile::Announcement& round) override;
  void Send(const kube::ObjectKey& job, const std::string& pod_uid,
            const reconcile::WorkerCommand& command) override;
  void LetGo(const kube::ObjectKey& job, const std::string& pod_uid) override;
  void Forget(const kube::ObjectKey& job) override;

 private:
  class Line;
  struct Worker {
    rendezvous::WorkerIdentity identity;
    bool native = false;
    std::string address;
    std::string kernels_digest;
    std::int64_t round = 0;
    bool silent = false;
    bool leaving = false;  // it was asked to go, or its program has ended
    bool left = false;     // its program has ended, as it has said
    bool let_go = false;   // and may
    bool cut = false;      // the operator has gone
    launcher::Outbox outbox;
    std::shared_ptr<Line> line;  // null while it is not connected
    rendezvous::Registry::StreamId stream = 0;
  };

  std::unique_ptr<rendezvous::Registry> MakeRegistry();
  Worker* FindConnected(const kube::ObjectKey& pod);
  // Opens a stream in place of the one that it may have, says Hello and all that holds.
  void Dial(Worker& worker);
  void SayHello(const Worker& worker);
  void SendHeartbeat(const Worker& worker);
  // Whether the pod is there and has not ended.
  bool HasProcess(const kube::ObjectKey& pod, const Worker& worker);
  // Says what this stream has not carried yet.
  void TellAll(Worker& worker);
  void HangUp(Worker& worker);
  // What the registry has said is acted upon: rounds are taken, ended streams go, and shards of
  // checkpoints that exist are forgotten.
  void Settle();

  const Clock& clock_;
  kube::Client& api_;
  std::string& log_;
  const std::function<void(const kube::ObjectKey&)> changed_;
  rendezvous::ObjectPodVerifier verifier_;
  std::unique_ptr<rendezvous::Registry> registry_;
  std::map<kube::ObjectKey, Worker> workers_;  // by pod
};

}  // namespace ringmaster::testing

#endif  // RINGMASTER_TESTS_SUPPORT_SCRIPTED_WORKERS_H_
