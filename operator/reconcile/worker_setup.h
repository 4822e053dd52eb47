// What a worker's pod needs on a cluster beside its program: a token that says who it is, the
// launcher where the image has none, and a security context. Each changes the pod's spec and its
// worker container in place.
#ifndef RINGMASTER_OPERATOR_RECONCILE_WORKER_SETUP_H_
#define RINGMASTER_OPERATOR_RECONCILE_WORKER_SETUP_H_

#include <string>
#include <vector>

#include "operator/kube/types.h"
#include "operator/reconcile/settings.h"

namespace ringmaster::reconcile {

inline constexpr char kTokenVolume[] = "ringmaster-token";
inline constexpr char kTokenMount[] = "/var/run/secrets/ringmaster.dev";
inline constexpr char kTokenFile[] = "/var/run/secrets/ringmaster.dev/token";
inline constexpr char kLauncherVolume[] = "ringmaster-launcher";
inline constexpr char kLauncherMount[] = "/ringmaster/launcher";
inline constexpr char kTemporaryVolume[] = "ringmaster-tmp";

// Mounts the pod's token for the rendezvous in the worker container. The token for the API server
// is not mounted unless the template asks for it: a worker needs nothing there.
void MountToken(kube::Json& spec, kube::Json& container);

// Adds an init container that copies the launcher from settings.launcher_image, and mounts the
// copy. Returns the command that starts it.
std::vector<std::string> InstallLauncher(const Settings& settings, kube::Json& spec,
                                         kube::Json& container);

// What the restricted Pod Security Standard asks for, a root file system that cannot be written,
// and a writable /tmp.
void Restrict(kube::Json& spec, kube::Json& container);

// Has the pod taken from a node that is lost, or not ready, much sooner than Kubernetes does by
// default, so that it is replaced even where its launcher has never been heard of. A toleration for
// such a node that the template has stays as it is.
void LeaveLostNodesSoon(kube::Json& spec);

// Mounts `volume` (a core/v1 Volume without its name) under this name and path.
void MountVolume(kube::Json& spec, kube::Json& container, kube::Json volume,
                 const std::string& name, const std::string& path, bool read_only = false);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_WORKER_SETUP_H_
