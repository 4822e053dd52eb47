// Ranks on hosts that are not the machine's own: network namespaces, held by processes, in which
// the benchmark of shaped links (tests/bench/collectives) lets them run.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_BENCH_HOSTS_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_BENCH_HOSTS_H_

#include <string>
#include <vector>

#include "common/status.h"

namespace ringmaster::collectives::bench {

struct Host {
  int pid = 0;          // of a process that is in its namespaces; 0: this machine itself
  std::string address;  // numeric, without a port
};

// "PID@ADDRESS,PID@ADDRESS,...". kInvalidArgument: it is not that.
absl::StatusOr<std::vector<Host>> ParseHosts(const std::string& text);

// Where a rank runs: as many ranks on each host as on the others, neighbours together. Without
// hosts, on this machine's loopback.
Host HostOf(const std::vector<Host>& hosts, int rank, int ranks);

// Moves this process, which must have one thread yet, into the host's network and mounts: what is
// in /dev/shm there is seen by the host's ranks alone. Needs root.
absl::Status Enter(const Host& host);

}  // namespace ringmaster::collectives::bench

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_BENCH_HOSTS_H_
