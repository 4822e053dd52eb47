#include "runtime/collectives/algorithm.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "common/env.h"
#include "common/status.h"

namespace ringmaster::collectives {
namespace {

constexpr std::array<const char*, kAlgorithms> kNames = {
    "auto", "direct",      "doubling",  "halving-doubling", "ring",
    "tree", "double-tree", "two-level", "one-shot"};
constexpr char kSetting[] = "RINGMASTER_COLLECTIVE_ALGORITHM";

}  // namespace

const char* NameOf(Algorithm algorithm) {
  return kNames[static_cast<size_t>(algorithm)];
}

absl::StatusOr<Algorithm> ParseAlgorithm(std::string_view name) {
  std::string listed;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Algorithm>(i);
    listed += fmt::format("{}{}", i == 0 ? "" : ", ", kNames[i]);
  }
  return absl::InvalidArgumentError(fmt::format("'{}' is no algorithm; one of {}", name, listed));
}

absl::StatusOr<Algorithm> AlgorithmFromEnvironment() {
  auto algorithm = ParseAlgorithm(env::GetString(kSetting));
  if (!algorithm.ok())
    return Annotate(algorithm.status(), fmt::format("environment variable {}", kSetting));
  return algorithm;
}

std::span<const Algorithm> AlgorithmsOf(OperationKind kind) {
  static constexpr Algorithm kAllreduce[] = {
      Algorithm::kDirect, Algorithm::kDoubling, Algorithm::kOneShot,    Algorithm::kHalvingDoubling,
      Algorithm::kRing,   Algorithm::kTree,     Algorithm::kDoubleTree, Algorithm::kTwoLevel};
  static constexpr Algorithm kReduce[] = {Algorithm::kTree, Algorithm::kDoubleTree,
                                          Algorithm::kRing};
  static constexpr Algorithm kBroadcast[] = {Algorithm::kTree, Algorithm::kDoubleTree,
                                             Algorithm::kTwoLevel};
  static constexpr Algorithm kOrderedSum[] = {Algorithm::kDirect, Algorithm::kOneShot,
                                              Algorithm::kHalvingDoubling};
  switch (kind) {
    case OperationKind::kAllreduce:
      return kAllreduce;
    case OperationKind::kReduce:
      return kReduce;
    case OperationKind::kBroadcast:
      return kBroadcast;
    case OperationKind::kOrderedSum:
      return kOrderedSum;
    default:
      return {};
  }
}

}  // namespace ringmaster::collectives
