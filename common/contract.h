// The names that the operator, the launcher and the trainer agree upon: labels, environment
// variables, ports and exit codes. Header-only constants; changing one is a change of protocol.
#ifndef RINGMASTER_COMMON_CONTRACT_H_
#define RINGMASTER_COMMON_CONTRACT_H_

namespace ringmaster::contract {

inline constexpr char kApiGroup[] = "training.ringmaster.dev";
inline constexpr char kApiVersion[] = "training.ringmaster.dev/v1alpha1";
inline constexpr char kKind[] = "TrainingJob";
inline constexpr char kControllerName[] =
    "ringmaster.dev/operator";  // the default of spec.managedBy

// Labels on every object that a job owns.
inline constexpr char kLabelJob[] = "training.ringmaster.dev/job";      // the job's name
inline constexpr char kLabelIndex[] = "training.ringmaster.dev/index";  // 0 .. replicas-1
inline constexpr char kLabelIncarnation[] =
    "training.ringmaster.dev/incarnation";                                 // 0, 1, ... per index
inline constexpr char kLabelManagedBy[] = "app.kubernetes.io/managed-by";  // "ringmaster"

// Environment of the launcher, set by the operator in every worker container.
inline constexpr char kEnvNamespace[] = "RINGMASTER_NAMESPACE";
inline constexpr char kEnvJob[] = "RINGMASTER_JOB";
inline constexpr char kEnvPodName[] = "RINGMASTER_POD_NAME";  // downward API: metadata.name
inline constexpr char kEnvPodUid[] = "RINGMASTER_POD_UID";    // downward API: metadata.uid
inline constexpr char kEnvPodIp[] = "RINGMASTER_POD_IP";      // downward API: status.podIP
inline constexpr char kEnvRendezvous[] =
    "RINGMASTER_RENDEZVOUS";  // host:port[,host:port] of the operator
inline constexpr char kEnvTrainerConfig[] =
    "RINGMASTER_TRAINER_CONFIG";  // JSON: WorkerConfig (training_job.proto)
inline constexpr char kEnvWorkspace[] =
    "RINGMASTER_WORKSPACE";  // what relative paths in the manifest are relative to
inline constexpr char kEnvLaunchMode[] =
    "RINGMASTER_LAUNCH_MODE";  // spec.launch.mode as the API spells it
inline constexpr char kEnvGraceSeconds[] =
    "RINGMASTER_GRACE_SECONDS";  // between SIGTERM and SIGKILL of the launcher's program
inline constexpr char kEnvCpus[] = "RINGMASTER_CPUS";  // processors to bind to: 0-3,8
inline constexpr char kEnvPeerInterface[] =
    "RINGMASTER_PEER_INTERFACE";  // where peers are reached (common/peer_address.h): net1
inline constexpr char kEnvBind[] =
    "RINGMASTER_BIND";  // how the trainer's threads are bound (common/thread_binding.h): 2+1
inline constexpr char kEnvCores[] =
    "RINGMASTER_CORES";  // processors that the node keeps for this worker: 0-3,8, or kNoCores
inline constexpr char kNoCores[] = "none";
inline constexpr char kEnvLifelineFd[] =
    "RINGMASTER_LIFELINE_FD";  // end of file: whoever started the pod is gone
inline constexpr char kEnvContainer[] =
    "RINGMASTER_CONTAINER";  // on a laptop: marks all that descends from one container
inline constexpr char kEnvTrainerBinary[] = "RINGMASTER_TRAINER_BINARY";

inline constexpr char kEnvRendezvousCa[] =
    "RINGMASTER_RENDEZVOUS_CA";  // PEM: who may vouch for the operator; TLS is then used
inline constexpr char kEnvTokenFile[] =
    "RINGMASTER_TOKEN_FILE";  // the pod's token for kTokenAudience

// Identity. What a worker's token is issued for, and the name in the rendezvous' certificate, which
// is not the address that was dialled: that may be a service's or any operator's own.
inline constexpr char kTokenAudience[] = "rendezvous.ringmaster.dev";
inline constexpr char kRendezvousServerName[] = "rendezvous.ringmaster.dev";

// Environment of the native trainer, set by the launcher.
inline constexpr char kEnvChannel[] = "RINGMASTER_CHANNEL";  // path of the launcher's Unix socket
inline constexpr char kEnvOtherCpus[] =
    "RINGMASTER_OTHER_CPUS";  // where threads run that are not of the OpenMP team: 0-3,8

// Default ports.
inline constexpr int kRendezvousPort = 7471;
inline constexpr int kMetricsPort = 7472;
inline constexpr int kWorkerPort =
    7473;  // the trainer's collectives (common/peer_address.h says where)
inline constexpr int kForeignMasterPort = 29500;  // MASTER_PORT of a program that is not ours

// Exit codes. 0 is success; 128+n is death by signal n, as a shell reports it. The codes 64..78
// follow sysexits.h where one fits. `Permanent` ones fail the job at once: a restart would end the
// same way.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,        // unknown: retried within the budget
  kExitJobFailed = 2,      // `ringmaster run`: the job reached Failed
  kExitUsage = 64,         // bad flags (permanent)
  kExitBadConfig = 65,     // manifest or trainer configuration is invalid (permanent)
  kExitBadData = 66,       // a data file is missing, malformed or empty (permanent)
  kExitBadModel = 67,      // shapes that do not fit, unknown layer, model too large (permanent)
  kExitDiverged = 68,      // the loss became NaN or infinite and the manifest says stop (permanent)
  kExitInternal = 70,      // a bug of ours: retried
  kExitNoResource = 71,    // disk full, out of memory: retried
  kExitPeerLost = 75,      // a peer or the rendezvous went away: a consequence, never a cause
  kExitInterrupted = 130,  // Ctrl-C: drained and checkpointed
};

constexpr bool IsPermanent(int exit_code) {
  return exit_code >= kExitUsage && exit_code <= kExitDiverged;
}

}  // namespace ringmaster::contract

#endif  // RINGMASTER_COMMON_CONTRACT_H_
