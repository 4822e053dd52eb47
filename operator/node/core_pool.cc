#include "operator/node/core_pool.h"

#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/bind_request.h"
#include "common/contract.h"
#include "common/cpu_list.h"

namespace ringmaster::node {
namespace {

// The last of the name counts, as for the process itself.
std::optional<std::string> ValueOf(const ProcessSpec& process, std::string_view name) {
  std::optional<std::string> value;
  for (const std::string& variable : process.environment) {
    if (variable.starts_with(name) && variable.substr(name.size(), 1) == "=")
      value = variable.substr(name.size() + 1);
  }
  return value;
}

std::string ListOf(const std::vector<Core>& cores) {
  std::vector<int> cpus;
  for (const Core& core : cores) cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
  return FormatCpuList(cpus);
}

}  // namespace

void CorePool::Tell(const std::string& uid, ProcessSpec& process) {
  const auto wanted = ValueOf(process, contract::kEnvBind);
  if (!wanted) return;
  const auto request = ParseBindRequest(*wanted);
  if (!request.ok()) return;  // the launcher says so
  std::string told = contract::kNoCores;
  if (!taken_.contains(uid)) {
    if (auto cores = TakeCores(free_, static_cast<size_t>(request->cores()))) {
      told = ListOf(*cores);
      taken_[uid] = *std::move(cores);
    }
  }
  process.environment.push_back(fmt::format("{}={}", contract::kEnvCores, told));
}

void CorePool::Release(const std::string& uid) {
  const auto taken = taken_.find(uid);
  if (taken == taken_.end()) return;
  for (Core& core : taken->second) free_.push_back(std::move(core));
  taken_.erase(taken);
  SortCores(free_);
}

}  // namespace ringmaster::node
