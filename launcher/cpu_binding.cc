#include "launcher/cpu_binding.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/contract.h"
#include "common/cpu_limit.h"
#include "common/cpu_list.h"
#include "common/status.h"
#include "common/thread_binding.h"

namespace ringmaster::launcher {
namespace {

absl::Status Malformed(std::string_view text) {
  return absl::InvalidArgumentError(
      fmt::format("'{}' is no list of processors (0-3,8) and no share of them (1/4)", text));
}

std::optional<size_t> ParseCount(std::string_view text) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

absl::StatusOr<std::vector<int>> ChooseShare(std::string_view text, size_t slash,
                                             const std::vector<Core>& cores) {
  constexpr size_t kMostParts = 1 << 16;
  const auto part = ParseCount(text.substr(0, slash));
  const auto parts = ParseCount(text.substr(slash + 1));
  if (!part || !parts || *part >= *parts || *parts > kMostParts) return Malformed(text);
  return PartOf(cores, *part, *parts);
}

// Both ascending.
std::vector<int> Intersection(const std::vector<int>& left, const std::vector<int>& right) {
  std::vector<int> both;
  std::ranges::set_intersection(left, right, std::back_inserter(both));
  return both;
}

absl::StatusOr<std::vector<int>> OwnCpus(const std::vector<int>& confined,
                                         const std::string& kept) {
  if (kept.empty()) return confined;
  if (kept == contract::kNoCores) {
    return absl::FailedPreconditionError(
        "this machine has too few cores for all its workers; let fewer or none of them be bound");
  }
  const auto cpus = ParseCpuList(kept);
  if (cpus) return Intersection(confined, *cpus);
  return absl::InvalidArgumentError(fmt::format(
      "environment variable {}: '{}' is no list of processors", contract::kEnvCores, kept));
}

}  // namespace

absl::StatusOr<std::vector<int>> ChooseCpus(std::string_view text, const std::vector<Core>& cores) {
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos) return ChooseShare(text, slash, cores);
  const auto named = ParseCpuList(text);
  if (!named) return Malformed(text);
  std::vector<int> chosen = Intersection(*named, PartOf(cores, 0, 1));
  if (chosen.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("none of the processors '{}' may be used here", text));
  }
  return chosen;
}

absl::StatusOr<std::map<std::string, std::string>> BindingFor(const std::string& request,
                                                              const std::vector<int>& confined,
                                                              const std::string& kept) {
  if (request.empty()) return std::map<std::string, std::string>();
  const auto wanted = ParseBindRequest(request);
  if (!wanted.ok()) {
    return Annotate(wanted.status(), fmt::format("environment variable {}", contract::kEnvBind));
  }
  RM_ASSIGN_OR_RETURN(const std::vector<int> own, OwnCpus(confined, kept));
  RM_ASSIGN_OR_RETURN(
      const ThreadBinding binding,
      PlanBinding(*wanted,
                  {.allowed = confined, .cores = ReadCores(own), .limit = TightestCpuLimit()}));
  RM_RETURN_IF_ERROR(CheckMayBind(binding));
  return BindingEnvironment(binding);
}

}  // namespace ringmaster::launcher
