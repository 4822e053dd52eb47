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
  // PEM of the rendezvous' certificate authority; empty where the stream is plain text.
  std::string rendezvous_ca;
  // Whether workers prove who they are by a projected, pod-bound token.
  bool worker_tokens = false;
  // The image of a worker container that the manifest gives none for.
  std::string worker_image = "ringmaster-worker:latest";
  // An image that holds the launcher and can install it into a folder (`ringmaster-launcher
  // --install`): an init container then brings it into the pods of foreign programs. Empty: the
  // program's own image has it.
  std::string launcher_image;
  // Whether pods that come without a template, and containers that the operator adds, get the
  // security context that the restricted Pod Security Standard asks for. A template's own is kept
  // as it is.
  bool restricted_pods = false;
  // The scheduler that pods of a gang name where their template names none; empty: the one that the
  // gang API's makers have named (gang_api.h).
  std::string gang_scheduler;
  // The program that is put before a worker's own command; PID 1 of the container.
  std::vector<std::string> launcher_command = {"ringmaster-launcher"};
  // What relative paths of a manifest are relative to, inside the container.
  std::string workspace = "/workspace";
  // Where checkpoints go when the manifest names neither a directory nor a volume; relative paths
  // are relative to the workspace. Empty: into a volume that lives as long as the pod, so that no
  // container needs a writable image.
  std::string checkpoint_directory = "checkpoints";
  // More variables for every worker container, before those of the manifest.
  std::map<std::string, std::string> worker_env;

  // --- How long is waited ---

  // How long a worker whose stream has ended may take to dial in again before it counts as lost.
  // Half of it is enough when a peer says so too.
  Duration reconnect_timeout = std::chrono::seconds(20);
  // The same of a worker that this operator has never heard of: it does not know yet who leads, and
  // may have to find out while the one before and its node are dark.
  Duration first_contact_timeout = std::chrono::seconds(40);
  // How long a worker may take to checkpoint and leave (suspend) or to checkpoint (scaling).
  Duration drain_timeout = std::chrono::seconds(30);
  // How long the operator looks for the first failure when all it sees are consequences.
  Duration root_cause_wait = std::chrono::seconds(2);
  // The least time between two writes of status.progress.
  Duration progress_interval = std::chrono::seconds(1);
};

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_SETTINGS_H_
