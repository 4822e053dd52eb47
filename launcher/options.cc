#include "launcher/options.h"

#include <fcntl.h>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "common/contract.h"
#include "common/cpu_list.h"
#include "common/env.h"
#include "common/status.h"
#include "launcher/cpu_binding.h"

namespace ringmaster::launcher {
namespace {

absl::StatusOr<std::string> Required(const char* name) {
  std::string value = env::GetString(name);
  if (value.empty())
    return absl::InvalidArgumentError(fmt::format("environment variable {} is not set", name));
  return value;
}

absl::StatusOr<LaunchMode> ParseMode(const std::string& text, bool has_command) {
  if (text.empty()) return has_command ? LaunchMode::kExec : LaunchMode::kNative;
  if (text == "Native") return LaunchMode::kNative;
  if (text == "Exec") return LaunchMode::kExec;
  if (text == "Torch") return LaunchMode::kTorch;
  if (text == "MPI") return LaunchMode::kMpi;
  return absl::InvalidArgumentError(
      fmt::format("environment variable {}: '{}' is none of Native, Exec, Torch, MPI",
                  contract::kEnvLaunchMode, text));
}

std::vector<std::string> SplitAddresses(std::string_view text) {
  std::vector<std::string> addresses;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    if (comma != 0) addresses.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return addresses;
}

// The trainer that was named, from the workspace on, or the one that lies beside this program.
std::string TrainerPath() {
  const std::filesystem::path named = env::GetString(contract::kEnvTrainerBinary);
  if (!named.empty()) return env::GetString(contract::kEnvWorkspace) / named;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "ringmaster-train").string();
}

absl::Status ReadCommand(const std::vector<std::string>& arguments, Options& options) {
  const bool dashes = !arguments.empty() && arguments.front() == "--";
  options.command.assign(arguments.begin() + (dashes ? 1 : 0), arguments.end());
  RM_ASSIGN_OR_RETURN(
      options.mode, ParseMode(env::GetString(contract::kEnvLaunchMode), !options.command.empty()));
  if (options.mode == LaunchMode::kNative) {
    if (!options.command.empty())
      return absl::InvalidArgumentError("launch mode Native takes no command");
    options.command = {TrainerPath()};
  }
  if (options.command.empty())
    return absl::InvalidArgumentError("no command: give the program to start after --");
  return absl::OkStatus();
}

absl::Status ReadIdentity(Options& options) {
  RM_ASSIGN_OR_RETURN(options.ns, Required(contract::kEnvNamespace));
  RM_ASSIGN_OR_RETURN(options.job, Required(contract::kEnvJob));
  RM_ASSIGN_OR_RETURN(options.pod, Required(contract::kEnvPodName));
  RM_ASSIGN_OR_RETURN(options.pod_uid, Required(contract::kEnvPodUid));
  RM_ASSIGN_OR_RETURN(options.pod_ip, Required(contract::kEnvPodIp));
  RM_ASSIGN_OR_RETURN(const std::string rendezvous, Required(contract::kEnvRendezvous));
  options.rendezvous = SplitAddresses(rendezvous);
  if (options.rendezvous.empty())
    return absl::InvalidArgumentError(
        fmt::format("environment variable {} names no address", contract::kEnvRendezvous));
  options.rendezvous_ca = env::GetString(contract::kEnvRendezvousCa);
  options.token_file = env::GetString(contract::kEnvTokenFile);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Options> ReadOptions(const std::vector<std::string>& arguments) {
  RM_RETURN_IF_ERROR(env::CheckAll());
  Options options;
  RM_RETURN_IF_ERROR(ReadCommand(arguments, options));
  RM_RETURN_IF_ERROR(ReadIdentity(options));
  RM_ASSIGN_OR_RETURN(const int64_t grace, env::GetInteger(contract::kEnvGraceSeconds));
  if (grace < 0)
    return absl::InvalidArgumentError(
        fmt::format("environment variable {} is negative", contract::kEnvGraceSeconds));
  options.grace = std::chrono::seconds(grace);
  RM_ASSIGN_OR_RETURN(const int64_t lifeline, env::GetInteger(contract::kEnvLifelineFd));
  options.lifeline_fd = static_cast<int>(lifeline);
  if (options.lifeline_fd >= 0 && ::fcntl(options.lifeline_fd, F_GETFD) < 0)
    return absl::InvalidArgumentError(
        fmt::format("environment variable {}: {} is not open", contract::kEnvLifelineFd, lifeline));
  const std::string cpus = env::GetString(contract::kEnvCpus);
  if (!cpus.empty()) {
    auto chosen = ChooseCpus(cpus, ReadCores(AllowedCpus()));
    if (!chosen.ok())
      return Annotate(chosen.status(), fmt::format("environment variable {}", contract::kEnvCpus));
    options.cpus = *std::move(chosen);
  }
  options.bind = env::GetString(contract::kEnvBind);
  options.kept_cores = env::GetString(contract::kEnvCores);
  return options;
}

}  // namespace ringmaster::launcher
