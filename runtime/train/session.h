// Session: one worker's whole life as a trainer, from reading the data to the end of training.
//
//   metrics::Registry registry;
//   Session session(config, options, inbox, events, registry);
//   Ending ending = session.Run();            // blocks; another thread fills the inbox
//   return ending.exit_code;
//
// Data and network are read and checked before Ready is sent, so that a mistake in them ends the
// job before any worker trains. Then the session takes one round after another. A peer that is
// lost, or a new round, ends the communicator and nothing else: the session restores the newest
// checkpoint and goes on. It never exits because of a peer; only because it is told to, because it
// is done, or because of an error of its own.
//
// Run once, on one thread. The references must outlive the session.
#ifndef RINGMASTER_RUNTIME_TRAIN_SESSION_H_
#define RINGMASTER_RUNTIME_TRAIN_SESSION_H_

#include <memory>
#include <optional>

#include "common/metrics.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/timeline.h"
#include "runtime/collectives/transport/tcp/listener.h"
#include "runtime/train/ending.h"
#include "runtime/train/inbox.h"
#include "runtime/train/messages.h"
#include "runtime/train/options.h"
#include "runtime/train/trainer_metrics.h"

namespace ringmaster::training::v1alpha1 {
struct WorkerConfig;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::train {

class Session {
 public:
  Session(const training::v1alpha1::WorkerConfig& config, const SessionOptions& options,
          Inbox& inbox, EventSink& events, metrics::Registry& registry);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Exit codes (common/contract.h): kExitOk when training finished or was drained;
  // kExitBadData, kExitBadModel, kExitBadConfig, kExitDiverged, kExitNoResource, kExitInternal for
  // errors of its own; kExitPeerLost when it was stopped, the launcher is gone, or no round came in
  // time.
  Ending Run();

 private:
  struct Parts;  // what is made once the data is read

  Ending RunToTheEnd();
  std::optional<Ending> Prepare();
  std::optional<Ending> OpenListener();
  std::optional<Ending> RunRound(const Round& round);
  void OpenTimeline(int rank);
  Ending LeaveWithoutRound();
  std::optional<Ending> AfterFailure(const Round& round, const absl::Status& status);

  const training::v1alpha1::WorkerConfig& config_;
  const SessionOptions options_;
  Inbox& inbox_;
  EventSink& events_;
  TrainerMetrics metrics_;
  int64_t round_ = 0;
  std::optional<int64_t> memory_before_;  // RoundContext
  std::unique_ptr<Parts> parts_;
  std::unique_ptr<collectives::Timeline> timeline_;  // where the configuration asks for one
  std::unique_ptr<collectives::tcp::Listener> listener_;
  std::unique_ptr<collectives::Communicator> communicator_;  // uses listener_
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_SESSION_H_
