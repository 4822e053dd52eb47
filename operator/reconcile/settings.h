// What the operator was started with, as far as decisions depend on it. The defaults suit a
// cluster.
#ifndef RINGMASTER_OPERATOR_RECONCILE_SETTINGS_H_
#define RINGMASTER_OPERATOR_RECONCILE_SETTINGS_H_

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "common/clock.h"

namespace ringmaster::reconcile {

struct Settings {
  // --- What goes into a worker's pod ---

  // Where launchers dial: "host:port[,host:port]".
  std::string rendezvous;
  // The image of a worker container that the manifest gives none for.
  std::string worker_image = "ringmaster-worker:latest";
  // The program that is put before a worker's own command; PID 1 of the container.
  std::vector<std::string> launcher_command = {"ringmaster-launcher"};
  // What relative paths of a manifest are relative to, inside the container.
  std::string workspace = "/workspace";
  // Where checkpoints go when the manifest names neither a directory nor a volume; relative paths
  // are relative to the workspace.
  std::string checkpoint_directory = "checkpoints";
  // More variables for every worker container, before those of the manifest.
  std::map<std::string, std::string> worker_env;

  // --- How long is waited ---

  // How long a worker whose stream has ended may take to dial in again before it counts as lost.
  // Half of it is enough when a peer says so too.
  Duration reconnect_timeout = std::chrono::seconds(20);
  // How long a worker may take to checkpoint and leave (suspend) or to checkpoint (scaling).
  Duration drain_timeout = std::chrono::seconds(30);
  // How long the operator looks for the first failure when all it sees are consequences.
  Duration root_cause_wait = std::chrono::seconds(2);
  // The least time between two writes of status.progress.
  Duration progress_interval = std::chrono::seconds(1);
};

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_SETTINGS_H_
