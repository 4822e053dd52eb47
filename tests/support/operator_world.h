// The operator's own loop over the memory store and its own rendezvous, with a clock that is turned
// by hand and workers that a script moves: everything that a scenario needs, and nothing that
// imitates what it tests.
// Not thread-safe.
#ifndef RINGMASTER_TESTS_SUPPORT_OPERATOR_WORLD_H_
#define RINGMASTER_TESTS_SUPPORT_OPERATOR_WORLD_H_

#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "common/clock.h"
#include "operator/kube/memory/store.h"
#include "operator/manager/manager.h"
#include "tests/support/recording_client.h"
#include "tests/support/scripted_workers.h"

namespace ringmaster::testing {

class OperatorWorld {
 public:
  // Ids repeat from one world to the next.
  OperatorWorld();

  const Clock& clock() const { return clock_; }
  // The API as a user, a kubelet or a scheduler writes to it: not printed, never failing.
  kube::Client& api() { return *store_; }
  // The API of a server whose CRD refuses nothing: for objects that ours would never let in.
  absl::Status CreateUnchecked(const kube::Json& job);
  // The API as the operator sees it.
  RecordingClient& client() { return client_; }
  ScriptedWorkers& workers() { return workers_; }
  // What the operator has done since the last call, one line each.
  std::string TakeLog() { return std::exchange(log_, {}); }

  // Time passes, in which workers say that they are there. The loop does not run.
  void Advance(Duration time);
  // Runs the loop until it is idle, retries that are due by the clock included. An operator that
  // was killed does nothing.
  absl::Status Run();
  // The operator is started anew: empty caches, no memory of workers, the same store.
  void RestartOperator();
  // The operator is started anew on a cluster that serves this gang API, or none.
  void ServeGangs(const reconcile::GangApi* api);
  // The operator is started anew, with this least time between statuses that say nothing new.
  void SetStatusInterval(Duration interval);
  // The store forgets its history, so that every watch has to begin with a list again.
  void ExpireHistory() { store_->ExpireHistory(); }

 private:
  void StartOperator();

  FakeClock clock_;
  std::string log_;
  std::unique_ptr<kube::memory::MemoryStore> store_;
  RecordingClient client_;
  ScriptedWorkers workers_;
  const reconcile::GangApi* gang_ = nullptr;
  Duration status_interval_{};
  std::unique_ptr<manager::Manager> manager_;
};

}  // namespace ringmaster::testing

#endif  // RINGMASTER_TESTS_SUPPORT_OPERATOR_WORLD_H_
