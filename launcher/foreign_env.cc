#include "launcher/foreign_env.h"

#include <fmt/format.h>

#include "common/contract.h"

namespace ringmaster::launcher {
namespace {

using Environment = std::map<std::string, std::string>;

void AddTorch(const std::string& job, const rendezvous::v1::Round& round, const std::string& rank,
              const std::string& size, Environment& environment) {
  const std::string master = round.members_size() > 0 ? round.members(0).address() : "";
  environment["MASTER_ADDR"] = HostPart(master);
  environment["MASTER_PORT"] = fmt::format("{}", contract::kForeignMasterPort);
  environment["RANK"] = environment["GROUP_RANK"] = environment["NODE_RANK"] = rank;
  environment["WORLD_SIZE"] = environment["GROUP_WORLD_SIZE"] = size;
  environment["LOCAL_RANK"] = "0";
  environment["LOCAL_WORLD_SIZE"] = "1";
  environment["TORCHELASTIC_RUN_ID"] = job;
  environment["TORCHELASTIC_RESTART_COUNT"] = fmt::format("{}", round.number() - 1);
}

void AddMpi(const std::string& rank, const std::string& size, const std::string& hostfile,
            Environment& environment) {
  environment["OMPI_COMM_WORLD_RANK"] = environment["PMI_RANK"] = rank;
  environment["OMPI_COMM_WORLD_SIZE"] = environment["PMI_SIZE"] = size;
  environment["OMPI_COMM_WORLD_LOCAL_RANK"] = environment["OMPI_COMM_WORLD_NODE_RANK"] = "0";
  environment["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  environment["OMPI_MCA_orte_default_hostfile"] = hostfile;  // Open MPI 4
  environment["PRTE_MCA_prte_default_hostfile"] = hostfile;  // Open MPI 5
}

}  // namespace

Environment ForeignEnvironment(LaunchMode mode, const std::string& job,
                               const rendezvous::v1::Round& round, const std::string& hostfile) {
  const std::string rank = fmt::format("{}", round.rank());
  const std::string size = fmt::format("{}", round.members_size());
  Environment environment{{"RINGMASTER_ROUND", fmt::format("{}", round.number())},
                          {"RINGMASTER_RANK", rank},
                          {"RINGMASTER_WORLD_SIZE", size}};
  std::string& members = environment["RINGMASTER_MEMBERS"];
  for (const rendezvous::v1::Member& member : round.members())
    members += (members.empty() ? "" : ",") + HostPart(member.address());
  if (mode == LaunchMode::kTorch) AddTorch(job, round, rank, size, environment);
  if (mode == LaunchMode::kMpi) AddMpi(rank, size, hostfile, environment);
  return environment;
}

std::string Hostfile(const rendezvous::v1::Round& round) {
  std::string text;
  for (const rendezvous::v1::Member& member : round.members())
    text += fmt::format("{} slots=1\n", HostPart(member.address()));
  return text;
}

std::string HostPart(const std::string& address) {
  if (address.starts_with('[')) return address.substr(1, address.find(']') - 1);
  return address.substr(0, address.rfind(':'));
}

}  // namespace ringmaster::launcher
