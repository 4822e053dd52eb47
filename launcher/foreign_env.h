// The environment in which a program that is not ours finds its place in a round: what torchrun or
// mpirun would have given it. One worker pod runs one process of it, so every local rank is 0 of 1.
#ifndef RINGMASTER_LAUNCHER_FOREIGN_ENV_H_
#define RINGMASTER_LAUNCHER_FOREIGN_ENV_H_

#include <map>
#include <string>

#include "launcher/options.h"
#include "ringmaster/rendezvous/v1/rendezvous.pb.h"

namespace ringmaster::launcher {

// All modes: RINGMASTER_ROUND, RINGMASTER_RANK, RINGMASTER_WORLD_SIZE, RINGMASTER_MEMBERS (hosts by
// rank, with commas).
// Torch adds MASTER_ADDR and MASTER_PORT (rank 0's), RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, NODE_RANK, TORCHELASTIC_RUN_ID,
// TORCHELASTIC_RESTART_COUNT. MPI adds OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE,NODE_RANK},
// PMI_{RANK,SIZE}, and the path of the host file where Open MPI 4 and 5 look for it.
std::map<std::string, std::string> ForeignEnvironment(LaunchMode mode, const std::string& job,
                                                      const rendezvous::v1::Round& round,
                                                      const std::string& hostfile);

// "10.0.0.1 slots=1" for each member, by rank.
std::string Hostfile(const rendezvous::v1::Round& round);

// "10.0.0.1:29500" and "[fd00::1]:29500" without the port (and brackets).
std::string HostPart(const std::string& address);

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_FOREIGN_ENV_H_
