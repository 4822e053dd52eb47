#include "common/env.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/check.h"
#include "common/contract.h"
#include "common/peer_address.h"
#include "common/status.h"

namespace ringmaster::env {
namespace {

constexpr std::array kVariables = {
    Variable{"GOMP_SPINCOUNT", Type::kString, "3000", Audience::kUser,
             "How often a thread of a trainer that waits for another one's part of an op looks for "
             "it before it sleeps, as GNU's OpenMP reads it; a trainer whose machine is its alone "
             "may look longer (infinite)."},
    Variable{"HOME", Type::kString, "", Audience::kUser,
             "Where .kube/config is looked for; passed on to local workers."},
    Variable{"KUBECONFIG", Type::kString, "", Audience::kUser,
             "Files that say where the cluster is, joined by colons; ~/.kube/config where empty."},
    Variable{"KUBERNETES_SERVICE_HOST", Type::kString, "", Audience::kUser,
             "Address of the API server; the kubelet sets it in each pod."},
    Variable{"KUBERNETES_SERVICE_PORT", Type::kString, "", Audience::kUser,
             "Port of the API server; the kubelet sets it in each pod."},
    Variable{"LANG", Type::kString, "", Audience::kUser, "Passed on to local workers."},
    Variable{"LD_LIBRARY_PATH", Type::kString, "", Audience::kUser, "Passed on to local workers."},
    Variable{"NCCL_MULTI_RANK_GPU_ENABLE", Type::kInteger, "0", Audience::kUser,
             "1 lets ranks of a collective that NCCL carries share a GPU; NCCL 2.30 or newer reads "
             "it, too."},
    Variable{"NO_COLOR", Type::kString, "", Audience::kUser,
             "Any value takes the colours out of the live view."},
    Variable{"OMP_WAIT_POLICY", Type::kString, "", Audience::kUser,
             "How threads of a trainer wait for one another where GOMP_SPINCOUNT does not say it: "
             "active or passive, as OpenMP reads it."},
    Variable{"PATH", Type::kString, "/usr/local/bin:/usr/bin:/bin", Audience::kUser,
             "Where local workers look for programs."},
    Variable{
        contract::kEnvBind, Type::kString, "", Audience::kInternal,
        "Threads that compute and cores that are set apart for communication (2+1): a launcher "
        "binds its trainer's threads so. It binds none where empty."},
    Variable{"RINGMASTER_BIN_DIR", Type::kString, "", Audience::kUser,
             "Folder of ringmaster-launcher and ringmaster-train; beside the running program where "
             "empty."},
    Variable{contract::kEnvChannel, Type::kString, "", Audience::kInternal,
             "Path of the launcher's Unix socket."},
    Variable{"RINGMASTER_COLLECTIVE_ALGORITHM", Type::kString, "auto", Audience::kUser,
             "What every collective operation that has this algorithm takes; auto: what the cost "
             "model chooses, and for a sum without virtual shards the ring. The same for all "
             "workers of a job.",
             "auto|direct|doubling|one-shot|halving-doubling|ring|tree|double-tree|two-level"},
    Variable{contract::kEnvCores, Type::kString, "", Audience::kInternal,
             "Processors that the local node keeps for one worker alone, as a list; none where it "
             "has too few."},
    Variable{
        contract::kEnvCpus, Type::kString, "", Audience::kUser,
        "Processors that a launcher binds its program to, as a list (0-3,8) or as the i-th of n "
        "even shares (i/n, from 0) of those that it may use: whole cores, domain by domain. All of "
        "them where empty."},
    Variable{"RINGMASTER_DEBUG_ARRIVAL_ORDER", Type::kBoolean, "false", Audience::kDebug,
             "Adds gradients in the order of ranks instead of the fixed tree's: the bits then "
             "depend on the world size."},
    Variable{"RINGMASTER_DEBUG_LOCAL_STATISTICS", Type::kBoolean, "false", Audience::kDebug,
             "Keeps batch-norm statistics of the worker's own shards only: the bits then depend on "
             "the world size."},
    Variable{"RINGMASTER_DEBUG_LOCAL_STREAMS", Type::kBoolean, "false", Audience::kDebug,
             "Keys random numbers by the place on the worker instead of the sample stream."},
    Variable{"RINGMASTER_FORCE_KERNELS", Type::kString, "", Audience::kDebug,
             "Uses only kernels of this kind.", "fastest|reference|onednn"},
    Variable{contract::kEnvGraceSeconds, Type::kInteger, "25", Audience::kInternal,
             "Seconds that a launcher's program has between SIGTERM and SIGKILL; less than the "
             "pod's own grace period."},
    Variable{contract::kEnvJob, Type::kString, "", Audience::kInternal,
             "Name of the job that a worker belongs to."},
    Variable{contract::kEnvLaunchMode, Type::kString, "", Audience::kInternal,
             "How a launcher starts its program: Native, Exec, Torch or MPI. Native without a "
             "command, else Exec, where empty."},
    Variable{
        contract::kEnvLifelineFd, Type::kInteger, "-1", Audience::kInternal,
        "Descriptor whose end of file tells a launcher that the program that started it is gone."},
    Variable{"RINGMASTER_LOG", Type::kString, "info", Audience::kUser,
             "Least level that is logged.", "debug|info|warning|error"},
    Variable{
        "RINGMASTER_MAX_VECTORS", Type::kString, "", Audience::kUser,
        "Widest vectors that a trainer computes with, so that machines of several kinds choose "
        "the same kernels; the widest that the processor has where empty.",
        "avx2|avx512"},
    Variable{contract::kEnvNamespace, Type::kString, "default", Audience::kInternal,
             "Namespace of the job."},
    Variable{
        contract::kEnvOtherCpus, Type::kString, "", Audience::kInternal,
        "Processors for all threads of a trainer but those of its OpenMP team, whose own are in "
        "OMP_PLACES."},
    Variable{
        contract::kEnvPeerInterface, Type::kNetworks, "", Audience::kUser,
        "Network over which a worker exchanges data with its peers: interfaces by name (net1) or "
        "subnets (10.2.0.0/16, fd00:2::/64), joined by commas; the first that it has an address "
        "in. The pod's own address where empty."},
    Variable{
        "RINGMASTER_PEER_TIMEOUT_SECONDS", Type::kInteger, "60", Audience::kUser,
        "Seconds that a peer of a trainer that waits for it may be silent before it is taken "
        "for hung: 1 to 86400, more than two steps compute, the same for all workers of a job."},
    Variable{contract::kEnvPodIp, Type::kString, "", Audience::kInternal,
             "Address of the worker's or the operator's own pod."},
    Variable{contract::kEnvPodName, Type::kString, "", Audience::kInternal,
             "Name of the worker's or the operator's own pod."},
    Variable{contract::kEnvPodUid, Type::kString, "", Audience::kInternal,
             "UID of the worker's pod."},
    Variable{contract::kEnvRendezvous, Type::kString, "", Audience::kInternal,
             "Where the operator's rendezvous listens."},
    Variable{
        contract::kEnvRendezvousCa, Type::kString, "", Audience::kInternal,
        "Certificate authority of the rendezvous, PEM; without it the stream is not encrypted."},
    Variable{"RINGMASTER_TCP_CONGESTION_CONTROL", Type::kString, "auto", Audience::kUser,
             "Congestion control of the connections between ranks: auto (reno within a host, else "
             "the machine's, but cubic or reno instead of BBR), machine (the machine's "
             "everywhere), or the name of one that the kernel allows."},
    Variable{contract::kEnvTokenFile, Type::kString, "", Audience::kInternal,
             "File of the pod's own token, with which a worker proves who it is."},
    Variable{contract::kEnvTrainerBinary, Type::kString, "", Audience::kDebug,
             "The native trainer that a launcher starts."},
    Variable{contract::kEnvTrainerConfig, Type::kString, "", Audience::kInternal,
             "What the trainer runs, as JSON."},
    Variable{contract::kEnvWorkspace, Type::kString, "/workspace", Audience::kInternal,
             "Folder that relative paths of a manifest start from."},
    Variable{"TERM", Type::kString, "dumb", Audience::kUser,
             "Kind of terminal; dumb switches the live view off."},
    Variable{"TMPDIR", Type::kString, "", Audience::kUser, "Passed on to local workers."},
};

const Variable* FindDeclared(std::string_view name) {
  const auto found = std::ranges::find(kVariables, name, &Variable::name);
  return found == kVariables.end() ? nullptr : &*found;
}

const Variable& Find(const char* name) {
  const Variable* const variable = FindDeclared(name);
  RM_CHECK(variable != nullptr, name);
  return *variable;
}

absl::Status Mistyped(const Variable& variable, std::string_view value, std::string_view wanted) {
  return absl::InvalidArgumentError(
      fmt::format("environment variable {}: '{}' is not {}", variable.name, value, wanted));
}

std::vector<std::string_view> ChoicesOf(const Variable& variable) {
  std::vector<std::string_view> choices;
  for (std::string_view rest = variable.choices; !rest.empty();) {
    choices.push_back(rest.substr(0, rest.find('|')));
    rest.remove_prefix(std::min(choices.back().size() + 1, rest.size()));
  }
  return choices;
}

absl::Status CheckChoice(const Variable& variable, std::string_view value) {
  if (variable.choices == nullptr) return absl::OkStatus();
  const std::vector<std::string_view> choices = ChoicesOf(variable);
  if (std::ranges::find(choices, value) != choices.end()) return absl::OkStatus();
  return Mistyped(variable, value, fmt::format("one of {}", fmt::join(choices, ", ")));
}

absl::StatusOr<int64_t> ParseInteger(const Variable& variable, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return Mistyped(variable, text, "a whole number");
  return value;
}

absl::StatusOr<bool> ParseBoolean(const Variable& variable, std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return Mistyped(variable, text, "true or false");
}

absl::Status Check(const Variable& variable, std::string_view value) {
  switch (variable.type) {
    case Type::kString:
      return CheckChoice(variable, value);
    case Type::kInteger:
      return ParseInteger(variable, value).status();
    case Type::kBoolean:
      return ParseBoolean(variable, value).status();
    case Type::kNetworks:
      return Annotate(CheckNetworks(value), fmt::format("environment variable {}", variable.name));
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const Variable> All() {
  return kVariables;
}

bool IsSet(const char* name) {
  const char* value = std::getenv(Find(name).name);
  return value != nullptr && *value != '\0';
}

std::string GetString(const char* name) {
  return IsSet(name) ? std::getenv(name) : Find(name).default_value;
}

absl::StatusOr<int64_t> GetInteger(const char* name) {
  return ParseInteger(Find(name), GetString(name));
}

absl::StatusOr<bool> GetBoolean(const char* name) {
  return ParseBoolean(Find(name), GetString(name));
}

absl::Status CheckValue(std::string_view name, std::string_view value) {
  const Variable* const variable = FindDeclared(name);
  return variable == nullptr || value.empty() ? absl::OkStatus() : Check(*variable, value);
}

absl::Status CheckAll() {
  for (const Variable& variable : kVariables) {
    if (IsSet(variable.name)) RM_RETURN_IF_ERROR(Check(variable, GetString(variable.name)));
  }
  return absl::OkStatus();
}

std::string Describe() {
  std::string text;
  for (const Variable& variable : kVariables) {
    text += fmt::format("{}={}  ({})  {}\n", variable.name, GetString(variable.name),
                        IsSet(variable.name) ? "environment" : "default", variable.help);
  }
  return text;
}

std::string Reference() {
  std::string text =
      "# Environment variables\n\n"
      "Every variable that Ringmaster's programs read. A value that does not parse is an error. "
      "`ringmaster --print-config` shows what is in force.\n";
  for (const auto& [audience, title] :
       {std::pair(Audience::kUser, "For you to set"),
        std::pair(Audience::kDebug, "For tests and for finding bugs"),
        std::pair(Audience::kInternal, "Set by Ringmaster's own programs for one another")}) {
    text += fmt::format("\n## {}\n\n| variable | default | meaning |\n|---|---|---|\n", title);
    for (const Variable& variable : kVariables) {
      if (variable.audience != audience) continue;
      const std::string value(variable.default_value);
      text += fmt::format("| `{}` | {} | {}{} |\n", variable.name,
                          value.empty() ? "" : "`" + value + "`", variable.help,
                          variable.choices == nullptr
                              ? ""
                              : fmt::format(" One of {}.", fmt::join(ChoicesOf(variable), ", ")));
    }
  }
  return text;
}

}  // namespace ringmaster::env
