// How the manager speaks with a job's workers. operator/rendezvous implements it, over gRPC streams
// or, in the scenarios, with workers that a script moves.
//
// Thread safety: every method may be called from any thread. None blocks on the network: commands
// are queued on the worker's stream, and a worker that is away misses them. Nothing is lost by
// that: the next pass decides again from what it sees, and says what is still to be said.
#ifndef RINGMASTER_OPERATOR_MANAGER_WORKER_LINK_H_
#define RINGMASTER_OPERATOR_MANAGER_WORKER_LINK_H_

#include <string>

#include "operator/kube/types.h"
#include "operator/reconcile/worker_command.h"
#include "operator/reconcile/worker_view.h"

namespace ringmaster::manager {

class WorkerLink {
 public:
  virtual ~WorkerLink() = default;

  // A copy of what is known of the job's workers now; empty for a job that nobody has joined.
  // Each change of it must put the job's key into the controller's queue.
  virtual reconcile::WorkersView SnapshotFor(const kube::ObjectKey& job) = 0;

  // Tells a stored round to each connected member that has not been told yet. Called after every
  // pass while the round stands, so it must be idempotent; members that dial in later are told
  // when they have said Hello. A Hello whose pod UID is not in the round is a worker waiting for
  // the next.
  virtual void Announce(const kube::ObjectKey& job, const reconcile::Announcement& round) = 0;

  // Sends a command to the worker whose pod has this UID. Dropped when it is not connected.
  // All but CheckpointCommittedCommand are repeated on later passes for as long as they hold, so
  // that a new operator, or a new stream, says what was not heard; sending one twice must do no
  // harm.
  virtual void Send(const kube::ObjectKey& job, const std::string& pod_uid,
                    const reconcile::WorkerCommand& command) = 0;

  // The worker whose pod has this UID may leave: what it has said is stored, or needed no more.
  // Nothing where it does not wait for that. Repeated on later passes while it waits.
  virtual void LetGo(const kube::ObjectKey& job, const std::string& pod_uid) = 0;

  // The job is gone or over: forget what was known of it, end its streams.
  virtual void Forget(const kube::ObjectKey& job) = 0;
};

}  // namespace ringmaster::manager

#endif  // RINGMASTER_OPERATOR_MANAGER_WORKER_LINK_H_
