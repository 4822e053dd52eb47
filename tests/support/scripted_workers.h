// Workers that a script moves, in place of launchers that dial in: the WorkerLink of the scenarios.
//
// It keeps what the rendezvous service keeps (one view per pod UID, a round told once per stream,
// a Drain or Stop not repeated), prints what the operator says, and calls `changed` when the script
// changes something. Not thread-safe.
#ifndef RINGMASTER_TESTS_SUPPORT_SCRIPTED_WORKERS_H_
#define RINGMASTER_TESTS_SUPPORT_SCRIPTED_WORKERS_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/clock.h"
#include "operator/manager/worker_link.h"

namespace ringmaster::testing {

class ScriptedWorkers : public manager::WorkerLink {
 public:
  // References must outlive this. Lines are appended to `log`.
  ScriptedWorkers(const Clock& clock, std::string& log,
                  std::function<void(const kube::ObjectKey&)> changed);

  // A worker says Hello and Ready at `address`; `round` is the one that it is in already.
  void Join(const kube::ObjectKey& job, const std::string& pod, const std::string& uid,
            const std::string& address, std::int64_t round);
  // Its stream ends.
  void Leave(const kube::ObjectKey& job, const std::string& pod);
  // Changes the view of a pod's worker by hand. False when no worker of this pod has ever joined.
  bool Change(const kube::ObjectKey& job, const std::string& pod,
              const std::function<void(reconcile::WorkerView&)>& change);
  // The pods whose workers are connected, in name order.
  std::vector<std::string> Connected(const kube::ObjectKey& job) const;
  // Everything is forgotten, as when the operator starts anew.
  void Reset();

  reconcile::WorkersView SnapshotFor(const kube::ObjectKey& job) override;
  void Announce(const kube::ObjectKey& job, const reconcile::Announcement& round) override;
  void Send(const kube::ObjectKey& job, const std::string& pod_uid,
            const reconcile::WorkerCommand& command) override;
  void Forget(const kube::ObjectKey& job) override;

 private:
  using Workers = std::map<std::string, reconcile::WorkerView>;  // by pod UID

  const Clock& clock_;
  std::string& log_;
  const std::function<void(const kube::ObjectKey&)> changed_;
  Time since_;
  std::map<kube::ObjectKey, Workers> jobs_;
  std::map<std::string, std::string> final_command_;  // by pod UID
};

}  // namespace ringmaster::testing

#endif  // RINGMASTER_TESTS_SUPPORT_SCRIPTED_WORKERS_H_
