// What a launcher does with the program that it runs: one way for the native trainer, which takes
// each round in process, one for any other, which is started anew on each round.
//
// Not thread-safe: belongs to the event loop's thread.
#ifndef RINGMASTER_LAUNCHER_WORKLOAD_H_
#define RINGMASTER_LAUNCHER_WORKLOAD_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "launcher/event_loop.h"
#include "launcher/options.h"
#include "launcher/program.h"
#include "launcher/rendezvous_session.h"

namespace ringmaster::launcher {

// What a workload works with; all of it outlives the workload.
struct WorkloadContext {
  EventLoop& loop;
  const Options& options;
  Program& program;
  RendezvousSession& session;
  // The workload is over: the launcher's exit code, and words for people.
  std::function<void(const ProgramEnd& end)> finish;
};

class Workload {
 public:
  virtual ~Workload() = default;
  virtual absl::Status Begin() = 0;
  virtual void Take(const rendezvous::v1::Command& command) = 0;
  // The pod is to go (SIGTERM): leave well within the grace period.
  virtual void Leave() = 0;
  virtual void Ended(const ProgramEnd& end) = 0;
};

std::unique_ptr<Workload> MakeNativeWorkload(WorkloadContext context);
std::unique_ptr<Workload> MakeForeignWorkload(WorkloadContext context);

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_WORKLOAD_H_
